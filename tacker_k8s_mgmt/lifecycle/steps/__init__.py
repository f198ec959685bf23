"""Steps that operations share."""
