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
        let names: Vec<_> = names(path).collect();
        let within = |place: &str| {
            let skip = self::names(place).count();
            let same = !place.is_empty()
                && names.len() >= skip
                && self::names(place).eq(names.iter().copied().take(skip));
            same.then_some(skip)
        };
        let (workspace, home, bailey) =
            (within(&places.workspace), within(&places.user_home), within(&places.bailey_home));
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
                self.places.programs.iter().any(|program| program == self.path).then_some(self.names.len())?
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
                Base::Workspace => inside(&self.places.workspace),
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

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}
