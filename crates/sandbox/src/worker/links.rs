//! Where symbolic links lead. On the host, a program that writes or reads
//! at a link of a session's would follow it.

use super::{
    beneath::{Root, join, split, type_of},
    layer::Layer,
};
use bailey_protocol::WsPath;
use rustix::{
    fs::{AtFlags, FileType, readlinkat, statat},
    io::Errno,
};

/// Links that are followed for one; the kernel's own limit is 40.
const FOLLOWED_MAX: usize = 64;

/// Whether a link that a session made at `at` leads out of the project, by itself or
/// through another link. The other link is one of the owner's in the project, or one in the
/// layer: an apply may bring either to the host.
pub(super) fn lead_out(layer: &Layer, at: &str, target: &[u8]) -> bool {
    if leads_out(layer.project.path(), at, target) {
        return true;
    }
    let Ok(target) = std::str::from_utf8(target) else { return true };
    let mut ways: Vec<LinkPath> = LinkPath::begin(layer, split(at).0, target).into_iter().collect();
    for _ in 0..FOLLOWED_MAX {
        let Some(way) = ways.pop() else { return false };
        match way.follow(layer) {
            Ok(more) => ways.extend(more),
            Err(Out) => return true,
        }
    }
    true
}

/// The way leads out of the project, or cannot be followed with certainty.
struct Out;

/// A path that is being followed: the place that it has reached,
/// through no link, and the parts that are left.
struct LinkPath {
    here: String,
    left: Vec<String>,
}

impl LinkPath {
    /// The way of a link's target from the directory that the link is in; `None` where it leads out at once.
    fn begin(layer: &Layer, dir: &str, target: &str) -> Option<Self> {
        let (here, target) = match target.starts_with('/') {
            false => (dir, target.to_owned()),
            true => ("", WsPath::from(target).relative_to(layer.project.path())?.to_owned()),
        };
        let mut left: Vec<String> = target.split('/').map(str::to_owned).collect();
        left.reverse();
        Some(Self { here: here.to_owned(), left })
    }

    /// Goes on to the next link, and from there where each side says that it leads.
    fn follow(mut self, layer: &Layer) -> Result<Vec<Self>, Out> {
        while let Some(name) = self.left.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." if self.here.is_empty() => return Err(Out),
                ".." => self.here = split(&self.here).0.to_owned(),
                name => {
                    let at = join(&self.here, name);
                    let links = [&layer.upper, &layer.project].map(|side| link(side, &at));
                    let links = links.into_iter().collect::<Result<Vec<_>, Out>>()?;
                    let targets: Vec<String> = links.into_iter().flatten().collect();
                    if !targets.is_empty() {
                        return targets.into_iter().map(|target| self.through(layer, &target)).collect();
                    }
                    self.here = at;
                }
            }
        }
        Ok(Vec::new())
    }

    /// The rest of the way behind a link in the directory where it has come to.
    fn through(&self, layer: &Layer, target: &str) -> Result<Self, Out> {
        let mut way = Self::begin(layer, &self.here, target).ok_or(Out)?;
        way.left.splice(0..0, self.left.iter().cloned());
        Ok(way)
    }
}

/// The target of a link at `at`; `None` where something else stands there, or nothing.
fn link(side: &Root, at: &str) -> Result<Option<String>, Out> {
    let (dir, name) = match side.place(at) {
        Ok(Some(place)) => place,
        // A mount is no link, and the files in it belong to no session.
        Ok(None) | Err(Errno::XDEV) => return Ok(None),
        Err(_) => return Err(Out),
    };
    match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if type_of(&stat) == FileType::Symlink => {
            let target = readlinkat(&dir, name, Vec::new()).map_err(|_| Out)?;
            target.into_string().map(Some).map_err(|_| Out)
        }
        Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(_) => Err(Out),
    }
}

/// Whether a link at `at` with this target leads out of the project by itself, or may: only `..` at the
/// target's beginning can be counted, since a name before a `..` may be a symlink itself.
pub(crate) fn leads_out(project: &str, at: &str, target: &[u8]) -> bool {
    let Ok(target) = std::str::from_utf8(target) else { return true };
    let (mut parts, mut depth) = match target.strip_prefix('/') {
        None => (target, at.split('/').count().saturating_sub(1)),
        Some(_) => match WsPath::from(target).relative_to(project) {
            Some(below) => (target.get(target.len() - below.len()..).unwrap_or_default(), 0),
            None => return true,
        },
    };
    loop {
        let (first, rest) = parts.split_once('/').unwrap_or((parts, ""));
        match first {
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            "" | "." if !rest.is_empty() => {}
            _ => return parts.split('/').any(|part| part == ".."),
        }
        parts = rest;
    }
}
