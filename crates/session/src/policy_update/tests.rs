//! How far a change came that was cut off, where its intent names something else than a rule file.

use super::is_done;
use bailey_protocol::{Amendment, Blob, Digest, WsPath};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::{fs, os::unix::fs::symlink, path::Path};

fn done(folder: &Path, path: &Path, new: Option<&str>) -> Option<bool> {
    let amendment = Amendment {
        path: WsPath(path.display().to_string()),
        old: None,
        new: new.map(|text| Blob(text.as_bytes().to_vec())),
        files: Digest([0; 32]),
        from: None,
        to: Digest([0; 32]),
    };
    is_done(folder, &amendment).ok()
}

/// To read one of these would never end.
#[test]
fn nothing_but_a_plain_rule_file_is_read() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("policy");
    fs::create_dir(&folder).unwrap();
    let [pipe, link, outside] =
        [folder.join("pipe.toml"), folder.join("link.toml"), home.path().join("pipe.toml")];
    for pipe in [&pipe, &outside] {
        mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }
    symlink("/dev/zero", &link).unwrap();
    for path in [&pipe, &link, &outside, Path::new("/dev/zero"), &folder.join("../pipe.toml")] {
        assert_eq!(done(&folder, path, Some("x")), None, "{}", path.display());
    }
    // The control: what is one.
    let own = folder.join("own.toml");
    assert_eq!([done(&folder, &own, None), done(&folder, &own, Some("x"))], [Some(true), Some(false)]);
    fs::write(&own, "x").unwrap();
    for (new, is) in [(Some("x"), true), (Some("y"), false), (Some("xx"), false), (None, false)] {
        assert_eq!(done(&folder, &own, new), Some(is), "{new:?}");
    }
}
