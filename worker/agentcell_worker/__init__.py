"""The inside of a cell: one request in, one session, one result out."""
