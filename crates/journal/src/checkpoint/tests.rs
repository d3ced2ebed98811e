use super::{Checkpoint, Forged, PublicKey, Secret, Statement, follow};
use bailey_protocol::Digest;

fn secret(number: u8) -> Secret {
    Secret::new([number; 32])
}

fn key(number: u8) -> PublicKey {
    PublicKey::of(&secret(number))
}

fn statement(epoch: u8) -> Statement {
    Statement {
        journal: Digest([1; 32]),
        epoch: epoch.into(),
        entries: 10 * (u64::from(epoch) + 1),
        root: Digest([2; 32]),
        head: Digest([3; 32]),
        time: "2026-01-02T03:04:05.000000006Z".parse().unwrap(),
        next: key(epoch + 1),
    }
}

/// The key of an epoch is that of its number.
fn line(count: u8) -> Vec<Checkpoint> {
    (0..count).map(|epoch| Checkpoint::sign(&statement(epoch), &secret(epoch))).collect()
}

#[test]
fn a_public_key_is_that_of_the_standard() {
    // RFC 8032, section 7.1, test 1.
    let secret = Digest::parse("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
    let public = PublicKey::of(&Secret::new(secret.0));
    assert_eq!(public.to_string(), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
}

#[test]
fn a_note_is_read_only_as_it_is_written() {
    let note = statement(7).to_string();
    assert_eq!(Statement::parse(&note), Some(statement(7)));
    let others = [
        note.replace("epoch 7", "epoch 07"),
        note.replace("epoch 7", "epoch +7"),
        note.replace('\n', "\r\n"),
        note.replace("entries 80", "entries 0"),
        note.replace("checkpoint 1", "checkpoint 2"),
        note.replace("0202", "02 02"),
        note.to_uppercase(),
        format!("{note}more\n"),
        format!("{note}\n"),
        note.trim_end().to_owned(),
        note.replace("root", "ruin"),
        String::new(),
    ];
    for other in others {
        assert_ne!(other, note);
        assert_eq!(Statement::parse(&other), None, "{other}");
    }
}

#[test]
fn a_line_is_followed_from_its_first_key_and_from_any_later_one() {
    let line = line(5);
    assert_eq!(follow(&line, &key(0)).unwrap().len(), 5);
    assert_eq!(follow(&line, &key(3)).unwrap().first().unwrap().epoch, 3);
    assert_eq!(follow(&line, &key(5)).unwrap(), [], "it signs what comes next");
    assert_eq!(follow(&line, &key(9)), Err(Forged::OtherKey(key(9))));
    assert_eq!(follow(&[], &key(0)), Err(Forged::OtherKey(key(0))));
}

#[test]
fn what_was_changed_left_out_or_signed_by_another_is_named() {
    let whole = line(5);
    let mut changed = whole.clone();
    changed[2].note = changed[2].note.replace("entries 30", "entries 31");
    assert_eq!(follow(&changed, &key(0)), Err(Forged::Signature { epoch: 2 }));
    let mut cut = whole.clone();
    cut.remove(2);
    assert_eq!(follow(&cut, &key(0)), Err(Forged::Signature { epoch: 3 }));
    let mut swapped = whole.clone();
    swapped.swap(1, 2);
    assert_eq!(follow(&swapped, &key(0)), Err(Forged::Signature { epoch: 2 }));
    // Who has today's key signs what comes, and nothing before.
    let mut forged = whole.clone();
    forged[1] = Checkpoint::sign(&statement(1), &secret(4));
    assert_eq!(follow(&forged, &key(0)), Err(Forged::Signature { epoch: 1 }));
    let signed_again =
        |says: Statement| [whole[..2].to_vec(), vec![Checkpoint::sign(&says, &secret(2))]].concat();
    let order = |says| match follow(&signed_again(says), &key(0)) {
        Err(Forged::Order { epoch, what }) => (epoch, what),
        other => panic!("{other:?}"),
    };
    assert_eq!(order(Statement { entries: 19, ..statement(2) }), (2, "it is about fewer entries"));
    assert_eq!(
        order(Statement { journal: Digest([9; 32]), ..statement(2) }),
        (2, "it is of another journal")
    );
    assert_eq!(order(Statement { epoch: 3, ..statement(2) }), (3, "one is left out"));
    // The control: the same, signed as it is.
    assert_eq!(follow(&signed_again(statement(2)), &key(0)).unwrap().len(), 3);
}

#[test]
fn a_checkpoint_is_read_back_from_json() {
    let checkpoint = line(1).pop().unwrap();
    let text = serde_json::to_string(&checkpoint).unwrap();
    assert_eq!(serde_json::from_str::<Checkpoint>(&text).unwrap(), checkpoint);
    for wrong in
        [text.replace("\"signature\":\"", "\"signature\":\"00"), text.replace("\"note\"", "\"nota\"")]
    {
        assert!(serde_json::from_str::<Checkpoint>(&wrong).is_err(), "{wrong}");
    }
}
