//! Entries for the fuzz targets into what crosses the walls: orders to the warden, the worker's replies,
//! git's index, pages of the web. Only the feature `fuzz` has them. Each fails when a promise is broken.

use crate::{
    charter::{self, Hidden},
    config::{Config, Lease, Shape, Yard},
    seccomp::Calls,
    wire::{self, Job, View, Wish},
    worker::{self, Response},
};
use bailey_protocol::Tier;
use std::{collections::BTreeSet, path::Path};

/// A packet to the warden: what is granted of it shows nothing hidden, and a merge writes to its own
/// session's project.
pub fn order(bytes: &[u8]) {
    let (wish, job) = match wire::split::<Wish>(bytes) {
        Ok((wish, job)) => (Some(wish), job),
        Err(_) => (None, bytes),
    };
    if let Some(wish) = wish {
        let hidden = hidden();
        for path in wish.extra_reads.iter().filter(|path| hidden.check(path).is_ok()) {
            let path = Path::new(path);
            assert!(!path.starts_with("/home/ann/.ssh") && !path.starts_with("/proc"), "shown: {path:?}");
            assert!(!Path::new("/home/ann/.bailey").starts_with(path), "shown: {path:?}");
        }
    }
    let Ok(job) = serde_json::from_slice::<Job>(job) else { return };
    let lease = lease();
    for view in View::ALL {
        if charter::check(&Calls::default(), &lease, view, &job).is_ok() {
            assert_eq!(job.task.view(), view);
            assert!(job.isolation.revealed.iter().all(|path| lease.revealed.contains(path)));
        }
    }
}

/// A reply of the worker, which has parsed the workspace's bytes: what is read of it can be written down
/// again.
pub fn reply(bytes: &[u8]) {
    let Ok(reply) = serde_json::from_slice::<Response>(bytes) else { return };
    assert!(serde_json::to_vec(&reply).is_ok());
}

/// Git's index, of either hash.
pub fn index(bytes: &[u8]) {
    worker::read_index(bytes);
}

/// A page of the web: its text is bounded, and made in a time that grows with the page.
pub fn page(bytes: &[u8]) {
    assert!(worker::page_text(bytes).len() <= 1 << 20);
}

fn hidden() -> Hidden {
    let config = Config {
        user_home: "/home/ann".into(),
        hidden: vec!["/home/ann/.bailey".into()],
        hidden_in_home: vec![".ssh".into(), ".config/*/token".into()],
        ..Config::default()
    };
    Hidden::new(&config).unwrap_or_default()
}

fn lease() -> Lease {
    Lease {
        tier: Tier::Internal,
        yard: Yard {
            project: "/home/ann/project".into(),
            folder: "/home/ann/.bailey/sessions/one".into(),
            linked: None,
            home: None,
        },
        revealed: BTreeSet::from(["/home/ann/project/.env".into()]),
        is_attended: false,
        is_scratch: false,
        shape: Shape::Walled,
        guest: None,
        programs: Default::default(),
    }
}
