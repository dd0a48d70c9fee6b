"""A finished run can go on: its epochs do not depend on how many follow."""
