use super::{Consistency, Inclusion, Several, Unproven, leaf, node, root, split};
use bailey_protocol::Digest;

/// The leaves that implementations of RFC 6962 are commonly tried with, and the roots over the first 1, 2, …
const LEAVES: [&[u8]; 8] = [
    b"",
    &[0x00],
    &[0x10],
    &[0x20, 0x21],
    &[0x30, 0x31],
    &[0x40, 0x41, 0x42, 0x43],
    &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
    &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
];
const ROOTS: [&str; 8] = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

fn leaves(count: usize) -> Vec<Digest> {
    let bytes = |data: &[u8]| Digest::of(&[&[0], data].concat());
    LEAVES[..count].iter().map(|data| bytes(data)).collect()
}

/// The tree's hash, as RFC 6962 defines it.
fn naive(leaves: &[Digest]) -> Digest {
    match leaves {
        [] => Digest::of(b""),
        [only] => *only,
        _ => {
            let mut k = 1;
            while k * 2 < leaves.len() {
                k *= 2;
            }
            node(&naive(&leaves[..k]), &naive(&leaves[k..]))
        }
    }
}

/// `PATH(m, D[n])` of section 2.1.1.
fn path(place: usize, leaves: &[Digest]) -> Vec<Digest> {
    if leaves.len() <= 1 {
        return Vec::new();
    }
    let k = usize::try_from(split(leaves.len() as u64)).unwrap();
    let (mut path, beside) = if place < k {
        (path(place, &leaves[..k]), &leaves[k..])
    } else {
        (path(place - k, &leaves[k..]), &leaves[..k])
    };
    path.push(naive(beside));
    path
}

/// `SUBPROOF(m, D[n], b)` of section 2.1.2.
fn subproof(old: usize, leaves: &[Digest], is_whole: bool) -> Vec<Digest> {
    if old == leaves.len() {
        return if is_whole { Vec::new() } else { vec![naive(leaves)] };
    }
    let k = usize::try_from(split(leaves.len() as u64)).unwrap();
    let (mut path, beside) = if old <= k {
        (subproof(old, &leaves[..k], is_whole), &leaves[k..])
    } else {
        (subproof(old - k, &leaves[k..], false), &leaves[..k])
    };
    path.push(naive(beside));
    path
}

fn many(count: u64) -> Vec<Digest> {
    (0..count).map(|number| leaf(&Digest::of(&number.to_be_bytes()))).collect()
}

#[test]
fn the_known_roots_come_out() {
    for (size, expected) in (1..).zip(ROOTS) {
        assert_eq!(root(&leaves(size)).to_string(), expected, "{size} leaves");
    }
    assert_eq!(root(&[]), Digest::of(b""));
}

#[test]
fn a_leaf_is_no_node() {
    // Without their first bytes the hash of two leaves would be that of a leaf of 64 bytes.
    let [one, other] = [1, 2].map(|byte| Digest([byte; 32]));
    assert_ne!(node(&one, &other), Digest::of(&[one.0, other.0].concat()));
    assert_ne!(leaf(&one), Digest::of(&one.0));
    assert_eq!(leaf(&one), Digest::of(&[&[0], one.0.as_slice()].concat()));
}

#[test]
fn every_place_of_every_small_tree_is_proven_and_no_other() {
    for size in 1..=33_u64 {
        let leaves = many(size);
        let root = naive(&leaves);
        for place in 0..size {
            let own = leaves[usize::try_from(place).unwrap()];
            let proof = Inclusion(path(usize::try_from(place).unwrap(), &leaves));
            assert_eq!(proof.check(own, place, size, &root), Ok(()), "{place} of {size}");
            let other = leaf(&Digest([9; 32]));
            assert_eq!(proof.check(other, place, size, &root), Err(Unproven::Root));
            assert_eq!(proof.check(own, place, size, &other), Err(Unproven::Root));
            assert_eq!(proof.check(own, size, size, &root), Err(Unproven::Outside));
            for elsewhere in (0..size).filter(|elsewhere| *elsewhere != place) {
                assert!(
                    proof.check(own, elsewhere, size, &root).is_err(),
                    "{place} as {elsewhere} of {size}"
                );
            }
            let longer = Inclusion([proof.0.clone(), vec![root]].concat());
            assert_eq!(longer.check(own, place, size, &root), Err(Unproven::Length));
            if let Some((_, rest)) = proof.0.split_last() {
                let shorter = Inclusion(rest.to_vec());
                assert_eq!(shorter.check(own, place, size, &root), Err(Unproven::Length));
            }
        }
    }
}

#[test]
fn every_small_tree_goes_on_from_every_smaller_one_and_from_no_other() {
    for new in 1..=33_u64 {
        let leaves = many(new);
        let new_root = naive(&leaves);
        for old in 1..=new {
            let old_root = naive(&leaves[..usize::try_from(old).unwrap()]);
            let proof = Consistency(subproof(usize::try_from(old).unwrap(), &leaves, true));
            assert_eq!(proof.check((old, &old_root), (new, &new_root)), Ok(()), "{old} of {new}");
            let other = Digest([9; 32]);
            assert!(proof.check((old, &other), (new, &new_root)).is_err(), "{old} of {new}");
            assert!(proof.check((old, &old_root), (new, &other)).is_err(), "{old} of {new}");
            assert_eq!(proof.check((0, &old_root), (new, &new_root)), Err(Unproven::Outside));
            assert_eq!(proof.check((new + 1, &old_root), (new, &new_root)), Err(Unproven::Outside));
            let longer = Consistency([proof.0.clone(), vec![new_root]].concat());
            assert_eq!(longer.check((old, &old_root), (new, &new_root)), Err(Unproven::Length));
        }
    }
}

/// The hash of each largest subtree that holds none of the places, from the left.
fn beside(places: &[u64], leaves: &[Digest], from: u64) -> Vec<Digest> {
    let size = leaves.len() as u64;
    let inside = |place: &&u64| (from..from + size).contains(*place);
    match places.iter().filter(inside).count() {
        0 => vec![naive(leaves)],
        _ if size == 1 => Vec::new(),
        _ => {
            let middle = split(size);
            let (left, right) = leaves.split_at(usize::try_from(middle).unwrap());
            [beside(places, left, from), beside(places, right, from + middle)].concat()
        }
    }
}

#[test]
fn several_leaves_of_every_small_tree_are_proven_and_no_others() {
    for size in 1..=8_u64 {
        let all = leaves(usize::try_from(size).unwrap());
        let root = root(&all);
        for chosen in 1..(1_u32 << size) {
            let places: Vec<u64> = (0..size).filter(|place| chosen >> place & 1 == 1).collect();
            let of = |place: u64| (place, all[usize::try_from(place).unwrap()]);
            let some: Vec<(u64, Digest)> = places.iter().map(|place| of(*place)).collect();
            let path = beside(&places, &all, 0);
            let check =
                |leaves: &[(u64, Digest)], path: &[Digest]| Several(path.to_vec()).check(leaves, size, &root);
            assert_eq!(check(&some, &path), Ok(()), "{places:?} of {size}");
            let mut other = some.clone();
            other[0].1 = Digest::of(b"another");
            assert_eq!(check(&other, &path), Err(Unproven::Root));
            let longer = [&path[..], &[Digest::of(b"one more")]].concat();
            assert_eq!(check(&some, &longer), Err(Unproven::Length));
            if let Some((_, shorter)) = path.split_last() {
                assert_eq!(check(&some, shorter), Err(Unproven::Length));
            }
            let beyond = [&some[..], &[(size, Digest::of(b"beyond"))]].concat();
            assert_eq!(check(&beyond, &path), Err(Unproven::Outside));
            let twice = [&some[..1], &some[..]].concat();
            assert_eq!(check(&twice, &path), Err(Unproven::Outside));
        }
    }
    assert_eq!(Several(Vec::new()).check(&[], 1, &leaves(1)[0]), Err(Unproven::Outside));
}
