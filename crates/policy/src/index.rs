//! Which rules can speak about a thing at all, found by its program or by where it lies.
//!
//! A decision then takes as long as the rules around the thing, and not as long as all rules. An index may
//! find too many, and never too few: whether a rule speaks is said by its conditions alone.

use crate::{
    command::Invocation,
    condition::Condition,
    glob::Glob,
    place::{Base, Located},
    subject::Resource,
};
use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec,
    vec::Vec,
};

/// Rules by what they demand. Each is a number of the caller's.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Those that demand neither a program nor a path.
    others: Vec<usize>,
    /// By the last name of a program's path.
    programs: BTreeMap<String, Vec<usize>>,
    /// By what a glob is relative to, and the names that it spells out from there on.
    folders: Vec<(Base, FolderNode)>,
}

/// The rules of a folder, and the folders in it.
#[derive(Debug, Default)]
struct FolderNode {
    rules: Vec<usize>,
    inner: BTreeMap<String, Self>,
}

/// Which numbers were found, each once, however many things lead to it.
struct Numbers(Vec<bool>);

impl Index {
    pub(crate) fn insert(&mut self, number: usize, condition: &Condition) {
        match (&condition.command, &condition.path) {
            (Some(prefixes), _) => {
                for prefix in prefixes {
                    self.programs.entry(last_name(prefix.program()).to_string()).or_default().push(number);
                }
            }
            (None, Some(globs)) => globs.iter().for_each(|glob| self.insert_glob(number, glob)),
            (None, None) => self.others.push(number),
        }
    }

    fn insert_glob(&mut self, number: usize, glob: &Glob) {
        let known = self.folders.iter().position(|(base, _)| *base == glob.base());
        let place = known.unwrap_or_else(|| {
            self.folders.push((glob.base(), FolderNode::default()));
            self.folders.len() - 1
        });
        let Some((_, root)) = self.folders.get_mut(place) else { return };
        let folder =
            glob.literals().fold(root, |folder, name| folder.inner.entry(name.to_string()).or_default());
        folder.rules.push(number);
    }

    /// The numbers below `bound` of all rules that can speak about any of these, in order.
    pub(crate) fn find(&self, resources: &[Resource<'_>], bound: usize) -> impl Iterator<Item = usize> {
        let mut found = Numbers(vec![false; bound]);
        found.add(&self.others);
        for resource in resources {
            self.find_programs(resource.words.as_ref(), &mut found);
            if let Some(path) = &resource.path {
                self.find_folders(path, &mut found);
            }
        }
        found.0.into_iter().enumerate().filter_map(|(number, is_found)| is_found.then_some(number))
    }

    fn find_programs(&self, words: Option<&Invocation>, found: &mut Numbers) {
        match words {
            Some(Invocation::Known { words, hidden, .. }) if hidden.is_empty() => {
                let program = words.first().map_or("", String::as_str);
                found.add(self.programs.get(last_name(program)).map_or(&[], Vec::as_slice));
            }
            // It may be any.
            Some(_) => self.programs.values().for_each(|rules| found.add(rules)),
            None => {}
        }
    }

    fn find_folders(&self, path: &Located<'_>, found: &mut Numbers) {
        for (base, root) in &self.folders {
            match path.below(*base) {
                Some(names) => root.follow(names, path.tree, found),
                None if path.holds(*base) => root.all(found),
                None => {}
            }
        }
    }
}

impl FolderNode {
    /// What is said about a path, and about each folder that it lies in; of a tree, all that is said beneath
    /// it, too.
    fn follow(&self, names: &[&str], is_tree: bool, found: &mut Numbers) {
        found.add(&self.rules);
        match names.split_first() {
            Some((name, rest)) => {
                if let Some(inner) = self.inner.get(*name) {
                    inner.follow(rest, is_tree, found);
                }
            }
            None if is_tree => self.all(found),
            None => {}
        }
    }

    /// As deep as the segments of a glob at most.
    fn all(&self, found: &mut Numbers) {
        found.add(&self.rules);
        self.inner.values().for_each(|inner| inner.all(found));
    }
}

impl Numbers {
    fn add(&mut self, numbers: &[usize]) {
        for number in numbers {
            if let Some(is_found) = self.0.get_mut(*number) {
                *is_found = true;
            }
        }
    }
}

/// Rules name a program with or without its folder, and so do commands.
fn last_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

#[cfg(test)]
mod tests;
