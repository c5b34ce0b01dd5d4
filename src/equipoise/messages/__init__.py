"""What the product says, as data, and the sentences that people read of it."""
