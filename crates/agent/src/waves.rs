//! Which calls of one reply may run at the same time.

use bailey_kernel::Claims;
use bailey_protocol::WsPath;

/// Groups of calls, by index and in order: the calls of a group run in parallel, one group after the other.
/// Two calls conflict when one writes what the other reads or writes; a call that may write anything
/// conflicts with every call that writes, and two such calls with each other. A call never overtakes one that
/// it conflicts with.
#[must_use]
pub fn waves(claims: &[Claims], workspace: &str) -> Vec<Vec<usize>> {
    let claims: Vec<Claims> = claims.iter().map(|claim| absolute(claim, workspace)).collect();
    let mut wave_of: Vec<usize> = Vec::with_capacity(claims.len());
    let mut waves: Vec<Vec<usize>> = Vec::new();
    for (index, claim) in claims.iter().enumerate() {
        let after = claims
            .iter()
            .zip(&wave_of)
            .filter(|(earlier, _)| conflict(earlier, claim))
            .map(|(_, wave)| wave + 1)
            .max();
        let wave = after.unwrap_or(0);
        wave_of.push(wave);
        match waves.get_mut(wave) {
            Some(calls) => calls.push(index),
            None => waves.push(vec![index]),
        }
    }
    waves
}

fn conflict(one: &Claims, other: &Claims) -> bool {
    let writes = |claims: &Claims| claims.everything || !claims.writes.is_empty();
    (one.everything && writes(other))
        || (other.everything && writes(one))
        || one.writes.iter().any(|path| touches(path, other))
        || other.writes.iter().any(|path| touches(path, one))
}

fn touches(path: &WsPath, claims: &Claims) -> bool {
    claims.reads.iter().chain(&claims.writes).any(|other| path.overlaps(other))
}

fn absolute(claims: &Claims, workspace: &str) -> Claims {
    let clean = |paths: &[WsPath]| paths.iter().map(|path| clean(path, workspace)).collect();
    Claims { reads: clean(&claims.reads), writes: clean(&claims.writes), ..*claims }
}

/// Joins to the workspace and takes `.` and `..` out, by the letter: symlinks are resolved later, inside the
/// walls, and of two names of one file the second change then finds that the file is not what it starts from.
pub(crate) fn clean(path: &WsPath, workspace: &str) -> WsPath {
    let joined = if path.0.starts_with('/') { path.0.clone() } else { format!("{workspace}/{}", path.0) };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    WsPath(format!("/{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::waves;
    use bailey_kernel::Claims;

    fn reads(path: &str) -> Claims {
        Claims { reads: vec![path.into()], ..Claims::default() }
    }

    fn writes(path: &str) -> Claims {
        Claims { writes: vec![path.into()], ..Claims::default() }
    }

    fn everything() -> Claims {
        Claims { everything: true, ..Claims::default() }
    }

    #[test]
    fn reads_run_together() {
        assert_eq!(waves(&[reads("a"), reads("a"), reads("b")], "/w"), [vec![0, 1, 2]]);
    }

    #[test]
    fn a_read_and_a_write_of_one_path_wait_for_each_other() {
        assert_eq!(
            waves(&[reads("a"), writes("./x/../a"), reads("/w/a")], "/w"),
            [vec![0], vec![1], vec![2]]
        );
    }

    #[test]
    fn a_directory_contains_its_files() {
        assert_eq!(waves(&[reads("src"), writes("src/lib.rs"), writes("srcs")], "/w"), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn an_undeclared_command_waits_for_writes_and_not_for_reads() {
        assert_eq!(waves(&[writes("a"), everything(), reads("b")], "/w"), [vec![0, 2], vec![1]]);
        assert_eq!(waves(&[everything(), everything()], "/w"), [vec![0], vec![1]]);
    }
}
