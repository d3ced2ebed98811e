//! The program `bailey`; all of it is in the library beside it, so that its parsers can be reached for
//! fuzzing.

fn main() -> std::process::ExitCode {
    bailey::main()
}
