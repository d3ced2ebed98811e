//! The program `bailey`; all of it is in the library beside it, so that its parsers can be reached for
//! fuzzing.

/// No variable takes a wall away from the program that people run.
#[cfg(feature = "controls")]
const _: () =
    assert!(env!("CARGO_BIN_NAME").len() > "bailey".len(), "`controls` is for `bailey-controls` alone");

fn main() -> std::process::ExitCode {
    bailey::main()
}
