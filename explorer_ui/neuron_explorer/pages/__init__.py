"""The pages: each function turns content into Dash components. React escapes every text in them."""
