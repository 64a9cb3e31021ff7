"""How members exchange: costs, measured lines, and the choice made of them. Pure."""
