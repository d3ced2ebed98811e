//! Files that a human reveals by a flag: one file, every file of a directory that looks like a secret, or the
//! files that a pattern names.

use crate::{
    compose::{self, Session},
    exit::Mistyped,
    place::Place,
};
use anyhow::{Result, bail};
use bailey_policy::{Glob, Names, Places};
use bailey_protocol::WsPath;
use bailey_sandbox::Shape;
use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// The most files of one pattern: each is written down by itself, and told to each effect.
const FILES_MAX: usize = 1_000;
/// The most entries of a project that are looked at by name.
const ENTRIES_MAX: usize = 5_000_000;

/// The files that this session's flags reveal. Each path is canonical but for links in the project, because
/// masks go by the letter. Only names are looked at.
///
/// # Errors
/// Where nothing can be revealed, a path leads out of the workspace, or nothing that looks like a secret is
/// named.
pub(crate) fn named(session: &Session<'_>, place: &Place) -> Result<Vec<WsPath>> {
    let wanted: Vec<&PathBuf> = session.options.iter().flat_map(|options| &options.reveal).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    if compose::is_compliance(session.config)? {
        return Err(Mistyped(
            "`--reveal` answers in the place of a person, which compliance forbids; leave it out, and each \
             read of the file asks first"
                .into(),
        )
        .into());
    }
    if place.shape == Shape::Copied {
        bail!(
            "nothing can be revealed here: secret-looking files are left out of the copy that the session works on"
        );
    }
    let looks = Looks {
        places: Places { workspace: place.workspace.0.clone(), ..Places::default() },
        names: Names::secret_looking(),
    };
    let mut named = Vec::new();
    for path in wanted {
        let path = absolute(place, path)?;
        let at = Path::new(&path.0);
        let is_there = fs::symlink_metadata(at).map(|found| found.is_dir());
        match is_there {
            Ok(true) if looks.beneath(at, |_| true, 1)?.is_empty() => {
                bail!(
                    "nothing in `{path}` looks like a secret, so there is nothing to reveal: everything in it can be read"
                )
            }
            Err(_) if path.0.contains(['*', '?', '[']) => named.extend(looks.matching(&path)?),
            _ => named.push(path),
        }
    }
    Ok(named)
}

/// A path as the human named it, from where they stand: by the letter, so that a link is not followed.
fn absolute(place: &Place, path: &Path) -> Result<WsPath> {
    let start = place.standpoint.start.as_ref().unwrap_or(&place.workspace);
    let absolute: PathBuf = Path::new(&start.0).join(path).components().collect();
    let mut parts = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let named = WsPath(parts.display().to_string());
    let spelled = place.standpoint.spelled.as_ref();
    let named = spelled.and_then(|own| named.moved(&own.0, &place.workspace.0)).unwrap_or(named);
    if !named.is_within(&place.workspace.0) {
        bail!("`{named}` is not in the workspace: only its own masked files can be revealed");
    }
    Ok(named)
}

/// The rules by which a file looks like a secret.
struct Looks {
    places: Places,
    names: Names,
}

impl Looks {
    fn matching(&self, pattern: &WsPath) -> Result<Vec<WsPath>> {
        let root = WsPath(self.places.workspace.clone());
        let below = pattern.relative_to(&root.0).unwrap_or_default();
        let glob = Glob::new(&format!("{{workspace}}/{below}"))?;
        let found = self.beneath(Path::new(&root.0), |path| glob.is_of(path, &self.places), FILES_MAX + 1)?;
        match found.len() {
            0 => bail!(
                "no file that looks like a secret matches `{below}`: `**` is any number of directories, as in 'tests/**/*.pem'"
            ),
            1..=FILES_MAX => Ok(found),
            _ => bail!(
                "`{below}` matches more than {FILES_MAX} files: reveal the directory that they lie in, with its path"
            ),
        }
    }

    /// Files beneath a directory that look like secrets and are wanted, this many at most. No link is
    /// followed.
    fn beneath(&self, top: &Path, is_wanted: impl Fn(&WsPath) -> bool, most: usize) -> Result<Vec<WsPath>> {
        let (mut found, mut seen) = (Vec::new(), 0);
        let mut waiting = vec![top.to_path_buf()];
        while let Some(directory) = waiting.pop() {
            // A directory that cannot be listed is covered whole, and nothing in it can be revealed.
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                seen += 1;
                if seen > ENTRIES_MAX || found.len() >= most {
                    return Ok(found);
                }
                let Ok(kind) = entry.file_type() else { continue };
                let path = WsPath(entry.path().display().to_string());
                if kind.is_dir() && !entry.path().ends_with(".git/objects") {
                    waiting.push(entry.path());
                } else if kind.is_file() && self.names.contains(&path, &self.places) && is_wanted(&path) {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }
}
