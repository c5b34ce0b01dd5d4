"""What the product says, as data, and the texts for Python, for the shell and for a browser's form.

Reading a table makes a :class:`Problem` or a :class:`Note`: a code that never changes, named
fields, and fixes. Only :mod:`equipoise.messages.texts` turns a code into English. An audit refuses
with a :class:`equipoise.messages.refusals.Refusal`.
"""

from equipoise.messages.problem import Fix, Message, Note, OpenChoice, Problem, ReadingProposal

__all__ = ["Fix", "Message", "Note", "OpenChoice", "Problem", "ReadingProposal"]
