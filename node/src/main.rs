//! The `cloister` command.

fn main() {}
