"""What flows find out themselves of a user's project: what there is, and whether what was made is any good."""
