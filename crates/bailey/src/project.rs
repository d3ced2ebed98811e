//! Which directory is the project.

use anyhow::{Context as _, Result, bail};
use bailey_protocol::WsPath;
use std::path::{Path, PathBuf};

/// The repository that `directory` lies in, or the directory itself; canonical. Only names are looked at.
pub(crate) fn find(directory: Option<&Path>, home: &crate::home::Home) -> Result<(PathBuf, WsPath)> {
    let named = directory.unwrap_or(Path::new("."));
    let start = std::fs::canonicalize(named)
        .with_context(|| format!("there is no directory `{}`", named.display()))?;
    if !start.is_dir() {
        bail!("`{}` is not a directory", named.display());
    }
    let root = start.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(&start).to_path_buf();
    if root.parent().is_none()
        || root == home.user
        || home.root.starts_with(&root)
        || root.starts_with(&home.root)
    {
        bail!(
            "`{}` cannot be a workspace: it is, or holds, a home directory; go to a project's directory, or name one \
             with -C DIR",
            root.display()
        );
    }
    let Some(text) = root.to_str() else {
        bail!("`{}` is not UTF-8: a workspace's path must be", root.display());
    };
    let workspace = WsPath(text.to_owned());
    Ok((root, workspace))
}
