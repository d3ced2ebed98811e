//! See the library: `lab` takes parts of it.

fn main() -> std::process::ExitCode {
    xtask::main()
}
