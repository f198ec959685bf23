"""A site without effects: state in, state out, and a fault where a test sets one."""
