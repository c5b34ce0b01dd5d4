"""The map from the paper to the code: every name exists, and every numbered place is there."""

from __future__ import annotations

import pytest
from paper.items import ITEMS, MAP, ROOT, file_of, find_name, items_table, map_table


@pytest.mark.parametrize("entry", [*MAP, *ITEMS], ids=lambda entry: entry.paper)
def test_every_name_exists_in_its_file(entry: tuple[str, str, tuple[str, ...]]) -> None:
    names = entry[-1]
    assert names
    for name in names:
        assert find_name(name) is not None
        assert (ROOT / file_of(name)).is_file()


def test_a_name_that_does_not_exist_is_found_out() -> None:
    with pytest.raises(AttributeError):
        find_name("equipoise.audits.rs_audit.RSAudit.no_such_step")
    with pytest.raises(ModuleNotFoundError):
        find_name("no_such_package.module")


def test_all_numbered_parts_of_the_paper_are_on_the_map() -> None:
    places = " | ".join(place.paper for place in MAP)
    for number in range(1, 7):
        assert f"Algorithm {number}" in places
    for number in range(1, 5):
        assert f"Theorem {number}" in places
    for part in ("Figure 1", "Figures 2 and 3", "Figure 4", "Figure 5"):
        assert part in places
    for part in ("Remark 1", "Remark 4", "Remark 5", "Remark 6"):
        assert part in places
    for part in ("Tables 1 and 2", "Table 3", "Tables 4 and 5", "Table 6", "Assumption 2"):
        assert part in places


def test_the_tables_have_a_row_for_each_entry_and_no_state_is_empty() -> None:
    assert len(ITEMS) >= 48
    assert len(items_table()) == len(ITEMS)
    assert len(map_table()) == len(MAP)
    assert "``" not in " ".join(map_table()["function"])  # a module alone is no function
    assert all(item.state and item.says for item in ITEMS)
