//! The program `bailey-boot`, which looks after the daemon; all of it is in the crate of that name.

fn main() -> std::process::ExitCode {
    bailey_boot::main()
}
