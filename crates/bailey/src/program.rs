//! The files of this program: what an apply never writes, as the built-in rule `binaries` has it.

use anyhow::{Context as _, Result};
use std::{
    env,
    path::{Path, PathBuf},
};

/// What the kernel adds to the path of a program whose file was replaced or removed since it began.
const REPLACED: &str = " (deleted)";
/// What keeps the daemon up, and lies beside it.
const BOOT: &str = "bailey-boot";

/// The paths of this program and of what keeps it up, whether or not a newer one has taken their places meanwhile.
///
/// # Errors
/// When the kernel does not say where this program lies.
pub(crate) fn files() -> Result<Vec<String>> {
    let path = env::current_exe().context("cannot find this program's own file")?;
    Ok(at(&path))
}

fn at(path: &Path) -> Vec<String> {
    let shown = path.display().to_string();
    // A file may really be called so: then both are kept.
    let replaced = shown.strip_suffix(REPLACED).map(PathBuf::from);
    let boot = path.with_file_name(BOOT);
    [Some(path.to_path_buf()), replaced, Some(boot)]
        .into_iter()
        .flatten()
        .map(|it| it.display().to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::at;
    use std::path::Path;

    #[test]
    fn a_program_whose_file_was_replaced_is_the_one_that_lies_there() {
        assert_eq!(at(Path::new("/usr/bin/bailey")), ["/usr/bin/bailey", "/usr/bin/bailey-boot"]);
        let of_replaced = at(Path::new("/usr/bin/bailey (deleted)"));
        assert!(of_replaced.iter().any(|it| it == "/usr/bin/bailey"), "{of_replaced:?}");
        assert!(of_replaced.iter().any(|it| it == "/usr/bin/bailey-boot"), "{of_replaced:?}");
    }
}
