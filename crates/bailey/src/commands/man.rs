//! `bailey man`: man pages, from the command line's own description.

use crate::{cli, print::Printer};
use anyhow::{Context as _, Result};
use std::{path::Path, process::ExitCode};

pub(super) fn run(directory: Option<&Path>, printer: &Printer) -> Result<ExitCode> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(cli::command()).render(&mut page)?;
        printer.part(String::from_utf8_lossy(&page));
        return Ok(ExitCode::SUCCESS);
    };
    let cannot = || format!("cannot write man pages to `{}`", directory.display());
    std::fs::create_dir_all(directory).with_context(cannot)?;
    clap_mangen::generate_to(cli::command(), directory).with_context(cannot)?;
    printer.note(&format!("man pages are in `{}`", directory.display()));
    Ok(ExitCode::SUCCESS)
}
