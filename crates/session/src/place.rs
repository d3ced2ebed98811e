//! Where a session works: in its project, beneath a layer; or, where there can be no namespaces and the owner
//! takes Landlock alone, in a private copy of it.

use crate::{
    Opening,
    compose::Session,
    home::{Folder, Home, read_json, write_private},
};
use anyhow::{Context as _, Result, bail};
use bailey_kernel::Standpoint;
use bailey_protocol::{Level, SessionId, WsPath};
use bailey_sandbox::{NOT_FOR_ROOT, Shape, Yard, can_make_namespaces};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The file in a session's folder that names the project that it has a copy of.
const ORIGIN: &str = "origin";
/// The file there that says where in the project the person stood.
const STANDPOINT: &str = "standpoint";

/// The project of which a session has a copy; none where it works in its project itself.
pub fn origin(home: &Home, id: SessionId) -> Option<WsPath> {
    fs::read_to_string(home.of_session(id, ORIGIN)).ok().map(WsPath)
}

/// Where the person of a session stood in its project when they opened it.
///
/// # Errors
/// When that is damaged.
pub fn standpoint(home: &Home, id: SessionId) -> Result<Standpoint> {
    read_json(&home.of_session(id, STANDPOINT))
}

/// Writes it down for the next process that goes on with the session.
pub fn keep_standpoint(folder: &Path, standpoint: &Standpoint) -> Result<()> {
    let path = folder.join(STANDPOINT);
    if *standpoint == Standpoint::default() && !path.exists() {
        return Ok(());
    }
    write_private(&path, &serde_json::to_vec(standpoint)?)
}

/// A session's place.
pub(crate) struct Place {
    /// The session's own folder.
    pub(crate) folder: PathBuf,
    /// The project, which an apply changes.
    pub(crate) project: PathBuf,
    /// What the session knows as its workspace.
    pub(crate) workspace: WsPath,
    /// What stands between it and the host.
    pub(crate) shape: Shape,
    /// Where the person stands in it.
    pub(crate) standpoint: Standpoint,
    /// What a person should know of it.
    pub(crate) remark: Option<String>,
}

impl Place {
    /// Finds or makes it.
    ///
    /// # Errors
    /// When the folder, or the place of a copy, cannot be made.
    pub(crate) fn of(session: &Session<'_>, id: SessionId) -> Result<Self> {
        let mut place = Self::without_standpoint(session, id)?;
        let mut standpoint = match &session.standpoint {
            Some(standpoint) => {
                keep_standpoint(&place.folder, standpoint)?;
                standpoint.clone()
            }
            None => standpoint(session.home, id)?,
        };
        // A session that goes on may find less of the project than there was.
        let start = standpoint.start.take().and_then(|start| {
            let there = Path::new(&start.0).ancestors().find(|directory| directory.is_dir())?;
            let start = WsPath(there.to_str()?.to_owned());
            start.moved(place.project.to_str()?, &place.workspace.0)
        });
        standpoint.start = start.filter(|start| *start != place.workspace);
        place.standpoint = standpoint;
        Ok(place)
    }

    fn without_standpoint(session: &Session<'_>, id: SessionId) -> Result<Self> {
        let Session { home, config, workspace, opening, is_scratch, is_direct, .. } = session;
        let project = PathBuf::from(&workspace.0);
        let is_new = matches!(opening, Opening::New(_));
        // Asked only where the answer matters: it takes a process.
        let takes_less = is_new && !is_direct && config.tiers.internal <= Level::Landlock;
        if takes_less && !can_make_namespaces(Path::new("/proc/self/exe"))? {
            if rustix::process::geteuid().is_root() {
                bail!(
                    "there can be no namespaces here, and Landlock alone, which your config.toml takes, {NOT_FOR_ROOT}"
                );
            }
            let folder = home.session_apart(id, *is_scratch)?;
            write_private(&folder.join(ORIGIN), project.as_os_str().as_encoded_bytes())?;
            return Self::copied(folder, project, true);
        }
        let Folder { path: folder, remark } = home.session(id, *is_scratch)?;
        if !is_new && let Some(origin) = origin(home, id) {
            return Self::copied(folder, origin.0.into(), false);
        }
        let shape = if *is_direct { Shape::Direct } else { Shape::Walled };
        let standpoint = Standpoint::default();
        Ok(Self { folder, project, workspace: workspace.clone(), shape, standpoint, remark })
    }

    fn copied(folder: PathBuf, project: PathBuf, is_new: bool) -> Result<Self> {
        let yard = Yard { project: project.clone(), folder: folder.clone(), linked: None, home: None };
        let copy = yard.copy();
        let why = if is_new {
            fs::create_dir_all(&copy).with_context(|| format!("cannot make `{}`", copy.display()))?;
            "there can be no namespaces here, and your config.toml takes `landlock`: "
        } else {
            ""
        };
        // Made anew it would look like a session that deleted all of its project.
        if !copy.is_dir() {
            bail!(
                "the copy of `{}` that this session works on, `{}`, is gone, and the session's changes with \
                 it; `bailey sessions rm` removes the rest of the session",
                project.display(),
                copy.display()
            );
        }
        let remark = format!(
            "{why}commands work on a copy of `{}` in `{}`, without its secret-looking files, any network, or /tmp; what Landlock alone \
             does not stop is in `bailey guide sandbox`",
            project.display(),
            copy.display()
        );
        let workspace = WsPath(copy.to_str().context("the session's folder is not UTF-8")?.into());
        let standpoint = Standpoint::default();
        Ok(Self { folder, project, workspace, shape: Shape::Copied, standpoint, remark: Some(remark) })
    }
}
