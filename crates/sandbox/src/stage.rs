//! The root of one session's sandboxes, built by its holder in a staging directory of its own mount
//! namespace.
//!
//! It is not pivoted into here: each effect's init does that in a namespace cloned from this one, after it
//! has bound its extra reads and its masks. So all effects of a session that live at once share one overlay
//! mount, which keeps them coherent. When none lives any more, [`Stage::renew`] puts a new mount in its
//! place; what that is made of lies beside the root, where no sandbox sees it.

use crate::{
    apart::{self, Mounts},
    config::Yard,
    ids::{Ids, Owners},
    plan::{EntryKind, Plan, PlanEntry},
    tree::{self, Access, Content, Kind},
    wire::View,
};
use rustix::{
    io::Errno,
    mount::{MountAttrFlags, MountPropagationFlags},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs::{self, DirBuilder},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    },
    path::{Path, PathBuf},
};

/// Where the staging tmpfs is mounted: a directory that every Linux has and that no sandbox shows.
pub(crate) const STAGING: &str = "/sys";
/// The root's own place in it.
const ROOT: &str = "root";

/// Tools that only root can open on behalf of its unprivileged child; empty for an ordinary user.
pub(crate) type OpenTools = Vec<(PathBuf, OwnedFd)>;

/// The project, the session's folder and a home of its own, where it has one, which only root can open on
/// behalf of its unprivileged child, in this order; empty for an ordinary user.
pub(crate) type OpenFolders = VecDeque<OwnedFd>;

/// Beside the root: the trees that it is made of.
const PROJECT: &str = "../project";
const FOLDER: &str = "../folder";

/// What a root has whoever's it will be: programs, files and devices, in the staging directory.
#[derive(Debug)]
pub(crate) struct Base {
    outer: OwnedFd,
    root: OwnedFd,
    system: Vec<Piece>,
    tools: Vec<Piece>,
    mounts: Mounts,
    /// Whether directories of the host are bound, and nothing is said of it: the control of a test.
    binds: bool,
    /// The directory that had to be bound, where one had to.
    bound: Option<PathBuf>,
}

/// Something that a root has.
#[derive(Debug)]
struct Piece {
    at: PathBuf,
    put: Put,
}

#[derive(Debug)]
enum Put {
    /// What of the host is attached under this name beside the root.
    Shown(String),
    /// The same of a device.
    Device(String),
    Link(PathBuf),
    Text(String),
    Directory,
}

/// A root, built.
#[derive(Debug)]
pub(crate) struct Stage {
    base: Base,
    /// The session's folder, to measure what it holds. Through it nothing of what is mounted in the root is
    /// seen.
    pub(crate) folder: OwnedFd,
}

impl Stage {
    /// The directory that is bound into the root, where one had to be: through it a socket of the host can be
    /// connected to.
    pub(crate) fn bound(&self) -> Option<&Path> {
        self.base.bound.as_deref()
    }

    /// Builds the root anew, so that it shows the project and the rest of the host as they are by now: an
    /// overlay that was looked at may hide them. No sandbox may live: two live mounts must never share an
    /// upper layer, and whatever was cloned from the old one keeps it alive.
    ///
    /// # Errors
    /// Names the step. There is no root then.
    pub(crate) fn renew(&mut self, plan: &Plan, yard: &Yard, view: View) -> Result<(), StageError> {
        if view != View::Workspace {
            return Ok(());
        }
        self.base.raise()?;
        self.base.furnish(plan, yard, view)
    }
}

/// A step of the building that failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub(crate) struct StageError {
    what: String,
    source: io::Error,
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> StageError {
    let what = what.into();
    move |source| StageError { what, source: explained(source) }
}

/// An error of a step of the root's, with what it takes where the kernel does not know the call.
pub(crate) fn explained(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) {
        return io::Error::other(format!("{error}: the walls need Linux 5.12 or newer"));
    }
    error
}

/// Opens the tools, where a holder will not be able to.
pub(crate) fn open_tools(ids: &mut Ids, plan: &Plan) -> OpenTools {
    let Ids::Root(owners) = ids else { return OpenTools::new() };
    // One of another file system, such as a share, that maps no owners is not there inside.
    let mut open = |at: &PathBuf| Some((at.clone(), mapped(owners, at, Access::ReadOnly, at).ok()?));
    plan.tools.iter().filter_map(|entry| open(&entry.at)).collect()
}

/// Makes the directories of a session's folder, and opens what its holder will not be able to.
///
/// # Errors
/// Names the path.
pub(crate) fn open(ids: &mut Ids, yard: &Yard, view: View) -> Result<OpenFolders, StageError> {
    folders(ids, yard, view)?;
    let Ids::Root(owners) = ids else { return Ok(OpenFolders::new()) };
    let mut open = |path: &Path, access: Access| mapped(owners, path, access, &yard.project);
    let mut trees: OpenFolders =
        [open(&yard.project, view.project())?, open(&yard.folder, Access::ReadWrite)?].into();
    if let Some(home) = &yard.home {
        trees.push_back(open(home, Access::ReadWrite)?);
    }
    Ok(trees)
}

fn mapped(owners: &mut Owners, path: &Path, access: Access, owner: &Path) -> Result<OwnedFd, StageError> {
    let name = || format!("`{}`", path.display());
    let tree = tree::open(path).map_err(failed(name()))?;
    let map = owners.of(owner).map_err(failed(format!("a user namespace for {}", name())))?;
    tree::restrict(tree.as_fd(), access, Some(map)).map_err(failed(format!(
        "the owner of {} cannot be mapped to an unprivileged user (its file system must support idmapped mounts)",
        name()
    )))?;
    Ok(tree)
}

/// What a session's folder has for its commands, and what only our own worker and git see.
const OF_COMMANDS: [&str; 4] = ["upper", "work", "home", "tmp"];
const OF_OURS: [&str; 3] = ["backups", "bases", "handover"];

/// The directories of a session's folder that a view needs, each belonging to whom the project belongs. A
/// first command waits for no more than its own.
pub(crate) fn folders(ids: &Ids, yard: &Yard, view: View) -> Result<(), StageError> {
    let ours = OF_OURS.iter().filter(|_| view != View::Workspace);
    for name in OF_COMMANDS.iter().chain(ours).copied() {
        let path = yard.folder.join(name);
        if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            continue;
        }
        let make = || -> io::Result<()> {
            DirBuilder::new().mode(0o700).create(&path)?;
            if name == "tmp" {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o1777))?;
            }
            if name == "upper" {
                fs::set_permissions(&path, fs::metadata(&yard.project)?.permissions())?;
            }
            if ids.is_root() {
                let (made, owner) = (fs::metadata(&path)?, fs::metadata(&yard.project)?);
                if (made.uid(), made.gid()) != (owner.uid(), owner.gid()) {
                    chown(&path, Some(owner.uid()), Some(owner.gid()))?;
                }
            }
            Ok(())
        };
        make().map_err(failed(format!("`{}`", path.display())))?;
    }
    passable(ids, yard).map_err(failed(format!("`{}`", yard.folder.display())))
}

/// Root's own folder of a session in a project of somebody else: who works inside may go through it, and look
/// around no more than before. What it lies in is root's alone.
fn passable(ids: &Ids, yard: &Yard) -> io::Result<()> {
    let (folder, project) = (fs::metadata(&yard.folder)?, fs::metadata(&yard.project)?);
    if ids.is_root() && folder.uid() != project.uid() {
        fs::set_permissions(&yard.folder, fs::Permissions::from_mode(0o711))?;
    }
    Ok(())
}

/// Lays out what every root has, with programs or without. The caller is the inside's user in a user and
/// mount namespace of its own.
///
/// # Errors
/// Names the step.
pub(crate) fn lay(
    plan: &Plan,
    has_programs: bool,
    tools: OpenTools,
    binds: bool,
) -> Result<Base, StageError> {
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", flags).map_err(|error| failed("making mounts private")(error.into()))?;
    // Sources are opened before the staging directory can hide one of them.
    let little = [
        PlanEntry { at: "/dev/null".into(), what: EntryKind::Device },
        PlanEntry { at: "/proc".into(), what: EntryKind::Directory },
    ];
    let system = sources(if has_programs { &plan.system } else { &little })?;
    let tools = if has_programs { own_sources(&plan.tools, tools)? } else { Vec::new() };

    let at = tree::directory(STAGING).map_err(failed(STAGING))?;
    tree::attach(tmpfs("1m")?.as_fd(), at.as_fd()).map_err(failed("the staging directory"))?;
    let outer = tree::directory(STAGING).map_err(failed(STAGING))?;
    let mut count = 0;
    let mut attached = |placed: Vec<Placed<'_>>| -> Result<Vec<Piece>, StageError> {
        placed.into_iter().map(|placed| attached(outer.as_fd(), placed, &mut count)).collect()
    };
    let (system, tools) = (attached(system)?, attached(tools)?);
    bind(outer.as_fd(), Path::new(ROOT), tmpfs("16m")?.as_fd())?;
    let root = enter()?;
    let mounts = Mounts::read(Path::new(STAGING)).map_err(failed("what is mounted"))?;
    let mut base = Base { outer, root, system, tools, mounts, binds, bound: None };
    base.lay()?;
    Ok(base)
}

fn attached(outer: BorrowedFd<'_>, placed: Placed<'_>, count: &mut u32) -> Result<Piece, StageError> {
    let (at, source) = placed;
    let mut attach = |tree: OwnedFd| {
        let name = count.to_string();
        *count += 1;
        apart::attach(outer, &name, tree.as_fd()).map_err(failed(at.display().to_string()))?;
        Ok(name)
    };
    let put = match source {
        PieceSource::Tree(tree) => Put::Shown(attach(tree)?),
        PieceSource::Device(tree) => Put::Device(attach(tree)?),
        PieceSource::Content(Content::Link(target)) => Put::Link(target.into()),
        PieceSource::Content(Content::Text(text)) => Put::Text(text.into()),
        PieceSource::Directory => Put::Directory,
    };
    Ok(Piece { at: at.into(), put })
}

/// Goes to the root. It is found by its path: what is mounted there is not what the directory was.
fn enter() -> Result<OwnedFd, StageError> {
    std::env::set_current_dir(Path::new(STAGING).join(ROOT)).map_err(failed("the staging root"))?;
    tree::directory(".").map_err(failed("the staging root"))
}

fn tmpfs(size: &str) -> Result<OwnedFd, StageError> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    tree::make("tmpfs", &[("size", size), ("mode", "755")], attributes).map_err(failed("a tmpfs"))
}

impl Base {
    /// Builds the root of a session.
    ///
    /// # Errors
    /// Names the step.
    pub(crate) fn build(
        mut self,
        plan: &Plan,
        yard: &Yard,
        view: View,
        mut opened: OpenFolders,
    ) -> Result<Stage, StageError> {
        let project = open_or(opened.pop_front(), &yard.project, view.project())?;
        let folder = open_or(opened.pop_front(), &yard.folder, Access::ReadWrite)?;
        for (name, source) in [("project", &project), ("folder", &folder)] {
            bind(self.outer.as_fd(), Path::new(name), source.as_fd())?;
        }
        if let Some(home) = &yard.home {
            let home = open_or(opened.pop_front(), home, Access::ReadWrite)?;
            bind(self.outer.as_fd(), Path::new("folder/home"), home.as_fd())?;
        }
        let folder = tree::directory(FOLDER).map_err(failed("the session's folder"))?;
        self.furnish(plan, yard, view)?;
        Ok(Stage { base: self, folder })
    }

    /// Puts a new root in the place of the old one.
    fn raise(&mut self) -> Result<(), StageError> {
        let step = |error: Errno| failed("the old root")(error.into());
        rustix::process::fchdir(&self.outer).map_err(step)?;
        tree::detach(ROOT).map_err(failed("the old root"))?;
        bind(self.outer.as_fd(), Path::new(ROOT), tmpfs("16m")?.as_fd())?;
        self.root = enter()?;
        self.lay()
    }

    fn lay(&mut self) -> Result<(), StageError> {
        self.bound = None;
        for piece in &self.system {
            let bound = self.put(piece)?;
            self.bound = self.bound.take().or(bound);
        }
        Ok(())
    }

    /// What a root has of one session's.
    fn furnish(&mut self, plan: &Plan, yard: &Yard, view: View) -> Result<(), StageError> {
        let root = self.root.as_fd();
        match view {
            View::Workspace => {
                // From the outside in: a home may lie in /tmp, a project in either.
                let mut pins = Pins::new(&plan.home);
                for place in WRITABLE {
                    part(root, "../folder/tmp", Path::new(place), Access::ReadWrite)?;
                }
                pins.above(root, &plan.home)?;
                part(root, "../folder/home", &plan.home, Access::ReadWrite)?;
                let mut bound = self.bound.take();
                for tool in &self.tools {
                    pins.above(root, &tool.at)?;
                    bound = bound.or(self.put(tool)?);
                    pins.shown.push(&tool.at);
                }
                self.bound = bound;
                pins.above(root, &yard.project)?;
                overlaid(root, yard)?;
                link(root, yard);
                Ok(())
            }
            View::Commits => {
                self.tools.iter().try_for_each(|tool| self.put(tool).map(drop))?;
                commits(root, yard)
            }
            View::Layers | View::Merge | View::Discard | View::Copy => layers(root, yard, view),
        }
    }

    /// Puts a piece into the root. Returns the directory that had to be bound, where one had to.
    fn put(&self, piece: &Piece) -> Result<Option<PathBuf>, StageError> {
        let root = self.root.as_fd();
        let Piece { at, put } = piece;
        let step = || failed(format!("`{}`", at.display()));
        let write = |content| tree::write(root, at, content).map_err(step());
        match put {
            Put::Shown(name) => {
                return apart::show(root, (name, at), &self.mounts, self.binds).map_err(step());
            }
            Put::Device(name) => {
                let tree = apart::attached(root, name).map_err(step())?;
                tree::restrict(tree.as_fd(), Access::Device, None).map_err(step())?;
                bind(root, at, tree.as_fd())?;
            }
            Put::Link(target) => write(Content::Link(target))?,
            Put::Text(text) => write(Content::Text(text))?,
            Put::Directory => drop(tree::place(root, at, Kind::Directory).map_err(step())?),
        }
        Ok(None)
    }
}

fn open_or(opened: Option<OwnedFd>, path: &Path, access: Access) -> Result<OwnedFd, StageError> {
    if let Some(tree) = opened {
        return Ok(tree);
    }
    open_tree(path, access).map_err(failed(format!("`{}`", path.display())))
}

fn open_tree(path: &Path, access: Access) -> io::Result<OwnedFd> {
    let tree = tree::open(path)?;
    tree::restrict(tree.as_fd(), access, None)?;
    Ok(tree)
}

/// Something to put at a path.
enum PieceSource<'a> {
    Tree(OwnedFd),
    Device(OwnedFd),
    Content(Content<'a>),
    Directory,
}

type Placed<'a> = (&'a Path, PieceSource<'a>);

/// Opens what the entries bind. What has gone since the plan was made is left out.
fn sources(entries: &[PlanEntry]) -> Result<Vec<Placed<'_>>, StageError> {
    let mut placed = Vec::new();
    for entry in entries {
        let access = if entry.what == EntryKind::Device { Access::Device } else { Access::ReadOnly };
        let source = match &entry.what {
            EntryKind::Link(target) => PieceSource::Content(Content::Link(target)),
            EntryKind::Text(text) => PieceSource::Content(Content::Text(text)),
            EntryKind::Directory => PieceSource::Directory,
            EntryKind::Bind | EntryKind::BindOwn | EntryKind::Device => match open_tree(&entry.at, access) {
                Ok(tree) if entry.what == EntryKind::Device => PieceSource::Device(tree),
                Ok(tree) => PieceSource::Tree(tree),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(format!("`{}`", entry.at.display()))(error)),
            },
        };
        placed.push((entry.at.as_path(), source));
    }
    Ok(placed)
}

fn own_sources(entries: &[PlanEntry], opened: OpenTools) -> Result<Vec<Placed<'_>>, StageError> {
    if opened.is_empty() {
        return sources(entries);
    }
    let mut opened: BTreeMap<PathBuf, OwnedFd> = opened.into_iter().collect();
    let mut placed = Vec::new();
    for entry in entries {
        placed.extend(opened.remove(&entry.at).map(|tree| (entry.at.as_path(), PieceSource::Tree(tree))));
    }
    Ok(placed)
}

fn bind(root: BorrowedFd<'_>, at: &Path, tree: BorrowedFd<'_>) -> Result<(), StageError> {
    let name = || format!("a mount at `{}`", at.display());
    let kind = tree::kind_of(tree).map_err(failed(name()))?;
    let place = tree::place(root, at, kind).map_err(failed(name()))?;
    tree::attach(tree, place.as_fd()).map_err(failed(name()))
}

/// Places that commands write, besides their home and the project.
const WRITABLE: [&str; 2] = ["/tmp", "/var/tmp"];

/// Directories above what is mounted, in places that commands write: each is a mount itself, so that nobody
/// can rename it. With it, what lies below would go to another path, and masks look for secrets at the old
/// one.
struct Pins<'a> {
    home: &'a Path,
    pinned: BTreeSet<PathBuf>,
    /// Directories that are shown and that nobody writes, by now.
    shown: Vec<&'a Path>,
}

impl<'a> Pins<'a> {
    fn new(home: &'a Path) -> Self {
        Self { home, pinned: BTreeSet::new(), shown: Vec::new() }
    }

    /// Pins each directory above a place.
    fn above(&mut self, root: BorrowedFd<'_>, at: &Path) -> Result<(), StageError> {
        let above: Vec<&Path> = at.ancestors().skip(1).filter(|above| self.is_movable(above)).collect();
        for above in above.into_iter().rev() {
            let step = || failed(format!("`{}`", above.display()));
            let place = tree::place(root, above, Kind::Directory).map_err(step())?;
            let own = tree::open_at(place.as_fd(), "").map_err(step())?;
            tree::restrict(own.as_fd(), Access::ReadWrite, None).map_err(step())?;
            tree::attach(own.as_fd(), place.as_fd()).map_err(step())?;
            self.pinned.insert(above.to_path_buf());
        }
        Ok(())
    }

    /// Whether a command could rename it.
    fn is_movable(&self, above: &Path) -> bool {
        let is_below = |place: &Path| above != place && above.starts_with(place);
        let is_writable = WRITABLE.iter().map(Path::new).chain([self.home]).any(is_below);
        #[cfg(feature = "controls")]
        if bailey_protocol::broken::broken("pins") {
            return false;
        }
        let is_shown = self.shown.iter().any(|shown| above.starts_with(shown));
        is_writable && !is_shown && above != self.home && !self.pinned.contains(above)
    }
}

/// The project's other path. It adds a name and no reach. A file that stands at that place already stays,
/// such as one that the session's programs left in their home, or the host's own link in a directory that is
/// shown.
fn link(root: BorrowedFd<'_>, yard: &Yard) {
    if let Some(linked) = &yard.linked {
        let _ = tree::write(root, linked, Content::Link(&yard.project));
    }
}

/// The project under the session's layer, mounted anew. The working directory is the root.
fn overlaid(root: BorrowedFd<'_>, yard: &Yard) -> Result<(), StageError> {
    let options = [
        ("lowerdir", PROJECT),
        ("upperdir", "../folder/upper"),
        ("workdir", "../folder/work"),
        ("userxattr", ""),
    ];
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let what = format!(
        "an overlay over `{}` with its upper layer in `{}`",
        yard.project.display(),
        yard.folder.display()
    );
    let overlay = tree::make("overlay", &options, attributes).map_err(failed(&what))?;
    // The kernel mounts it read-only, and says so only in its log, when it cannot use the work directory.
    if tree::is_read_only(overlay.as_fd()).map_err(failed(&what))? {
        return Err(failed(&what)(io::ErrorKind::ReadOnlyFilesystem.into()));
    }
    bind(root, &yard.project, overlay.as_fd())
}

/// The project, the upper layer and the backups side by side, each at its own path.
fn layers(root: BorrowedFd<'_>, yard: &Yard, view: View) -> Result<(), StageError> {
    part(root, PROJECT, &yard.project, Access::ReadWrite)?;
    part(root, "../folder/upper", &yard.upper(), view.upper())?;
    part(root, "../folder/handover", &yard.handover(), Access::ReadOnly)?;
    part(root, "../folder/bases", &yard.bases(), Access::ReadWrite)?;
    part(root, "../folder/backups", &yard.backups(), view.project())
}

/// The project's own repository, the layer and the folder between them, each at its own path. What the
/// project holds besides may be secret.
fn commits(root: BorrowedFd<'_>, yard: &Yard) -> Result<(), StageError> {
    part(root, "../project/.git", &yard.project.join(".git"), Access::ReadOnly)?;
    part(root, "../folder/upper", &yard.upper(), Access::ReadOnly)?;
    part(root, "../folder/handover", &yard.handover(), Access::ReadWrite)
}

/// Binds a part of what is attached beside the root at a place of it. Access is only ever narrowed: what
/// is read-only there stays so here.
fn part(root: BorrowedFd<'_>, from: &str, at: &Path, access: Access) -> Result<(), StageError> {
    let tree = tree::open_at(root, from).map_err(failed(from))?;
    tree::restrict(tree.as_fd(), access, None).map_err(failed(from))?;
    bind(root, at, tree.as_fd())
}
