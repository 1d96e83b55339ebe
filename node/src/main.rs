//! The `cloister` command.

fn main() -> std::process::ExitCode {
    cloister_node::cli::main()
}
