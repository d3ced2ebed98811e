//! Where things lie, and where one path lies among them.

use alloc::{string::String, vec::Vec};
use bailey_protocol::quoted;

/// What a glob is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Root,
    Workspace,
    Home,
    Bailey,
    Programs,
}

/// The places that globs name. All are canonical absolute paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// `{workspace}`: the project, at the same path inside and outside the walls.
    pub workspace: String,
    /// `{home}`: the user's home directory.
    pub user_home: String,
    /// `{bailey}`: Bailey's own directory.
    pub bailey_home: String,
    /// `{programs}`: Bailey's own binaries and launchers, and those of the owner's that it runs or asks.
    pub programs: Vec<String>,
    /// The project that the workspace is a private copy of, where it is one: what lies in the copy is judged
    /// by its name in the project.
    pub project: Option<String>,
}

/// A canonical path, split once for all rules.
#[derive(Debug)]
pub(crate) struct Located<'a> {
    /// The path as text.
    pub(crate) path: &'a str,
    /// Whether the action reaches everything beneath it, too.
    pub(crate) tree: bool,
    names: Vec<&'a str>,
    places: &'a Places,
    workspace: Option<usize>,
    home: Option<usize>,
    bailey: Option<usize>,
}

impl<'a> Located<'a> {
    pub(crate) fn new(path: &'a str, tree: bool, places: &'a Places) -> Self {
        let mut names: Vec<_> = names(path).collect();
        let mut workspace = within(&names, &places.workspace);
        if let (Some(skip), Some(project)) = (workspace, &places.project) {
            let below = names.split_off(skip);
            names = self::names(project).collect();
            workspace = Some(names.len());
            names.extend(below);
        }
        let (home, bailey) = (within(&names, &places.user_home), within(&names, &places.bailey_home));
        Self { path, tree, names, places, workspace, home, bailey }
    }

    /// The segments below a place; `None` when the path does not lie in it.
    pub(crate) fn below(&self, base: Base) -> Option<&[&'a str]> {
        let skip = match base {
            Base::Root => 0,
            Base::Workspace => self.workspace?,
            Base::Home => self.home?,
            Base::Bailey => self.bailey?,
            Base::Programs => {
                let is_it = |program: &String| self::names(program).eq(self.names.iter().copied());
                self.places.programs.iter().any(is_it).then_some(self.names.len())?
            }
        };
        self.names.get(skip..)
    }

    /// Whether the path is a tree that contains the place.
    pub(crate) fn holds(&self, base: Base) -> bool {
        let inside = |place: &str| {
            let mut place = names(place);
            self.names.iter().all(|name| place.next() == Some(name))
        };
        self.tree
            && match base {
                Base::Root => false,
                Base::Workspace => {
                    inside(&self.places.workspace) || self.places.project.as_deref().is_some_and(inside)
                }
                Base::Home => inside(&self.places.user_home),
                Base::Bailey => inside(&self.places.bailey_home),
                Base::Programs => self.places.programs.iter().any(|program| inside(program)),
            }
    }

    /// The path as people know it: relative to the workspace when it lies there.
    pub(crate) fn shown(&self) -> String {
        match self.below(Base::Workspace) {
            Some(names) if !names.is_empty() => quoted(&names.join("/")),
            _ => quoted(self.path),
        }
    }
}

/// How many names of a path lead to a place that it lies in.
fn within(path: &[&str], place: &str) -> Option<usize> {
    let skip = names(place).count();
    let is_in = !place.is_empty() && path.len() >= skip && names(place).eq(path.iter().copied().take(skip));
    is_in.then_some(skip)
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}
