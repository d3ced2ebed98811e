use super::{Forest, consistency, grow, inclusion, root};
use crate::{merkle, schema::MIGRATIONS};
use bailey_protocol::Digest;
use bailey_store::{Grade, Store, Tx, params};

/// Past the first tile of tiles.
const MANY: u64 = 65_536 + 2 * 256 + 77;

fn chained(seq: u64) -> Digest {
    Digest::of(&seq.to_be_bytes())
}

/// Entries of which only the hash is anything.
fn write(tx: &mut Tx<'_>, from: u64, to: u64, grows: bool) {
    for seq in from..=to {
        let sql = "INSERT INTO entry (seq, type, body, hash) VALUES (?1, 'test', x'', ?2)";
        tx.execute(sql, params![seq, chained(seq).0]).unwrap();
        if grows {
            grow(tx, seq).unwrap();
        }
    }
}

fn leaves(size: u64) -> Vec<Digest> {
    (1..=size).map(|seq| merkle::leaf(&chained(seq))).collect()
}

/// Sizes around every kind of border.
fn sizes(max: u64) -> impl Iterator<Item = u64> {
    const SMALL: [u64; 7] = [1, 2, 255, 256, 257, 768, 1000];
    const LARGE: [u64; 2] = [65_536, MANY];
    let borders = if max == MANY { LARGE.as_slice() } else { SMALL.as_slice() };
    borders.iter().copied().filter(move |size| *size <= max)
}

fn compare(tx: &Tx<'_>, max: u64) {
    let leaves = leaves(max);
    for size in sizes(max) {
        let whole = root(tx, size).unwrap();
        assert_eq!(whole, merkle::root(&leaves[..usize::try_from(size).unwrap()]), "{size}");
        for seq in sizes(size) {
            let proof = inclusion(tx, seq - 1, size).unwrap();
            assert_eq!(
                proof.check(merkle::leaf(&chained(seq)), seq - 1, size, &whole),
                Ok(()),
                "{seq} of {size}"
            );
            let older = root(tx, seq).unwrap();
            let proof = consistency(tx, seq, size).unwrap();
            assert_eq!(proof.check((seq, &older), (size, &whole)), Ok(()), "{seq} to {size}");
        }
    }
}

#[tokio::test]
async fn a_tree_in_tiles_is_the_tree_of_the_standard() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(&home.path().join("tree.db"), MIGRATIONS).unwrap();
    let work = |tx: &mut Tx<'_>| {
        write(tx, 1, MANY, true);
        compare(tx, MANY);
        let count = |level| {
            tx.query_row("SELECT count(*) FROM tile WHERE level = ?1", params![level], |row| row.get(0))
        };
        let levels: [u64; 3] = [1, 2, 3].map(|level| count(level).unwrap());
        assert_eq!(levels, [258, 1, 0]);
        let mut forest = Forest::default();
        for seq in 1..=MANY {
            forest.push(tx, &chained(seq)).unwrap().unwrap();
        }
        assert_eq!(forest.root(), root(tx, MANY).unwrap());
        Ok(())
    };
    store.write(Grade::Normal, work).await.unwrap();
}

#[tokio::test]
async fn what_an_older_journal_lacks_of_the_tree_is_computed_and_then_kept() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(&home.path().join("tree.db"), MIGRATIONS).unwrap();
    let work = |tx: &mut Tx<'_>| {
        write(tx, 1, 1000, false);
        compare(tx, 1000);
        let tiles =
            |tx: &Tx<'_>| tx.query_row("SELECT count(*) FROM tile", params![], |row| row.get::<_, u64>(0));
        assert_eq!(tiles(tx).unwrap(), 0);
        write(tx, 1001, 1024, true);
        assert_eq!(tiles(tx).unwrap(), 4);
        compare(tx, 1024);
        Ok(())
    };
    store.write(Grade::Normal, work).await.unwrap();
}

#[tokio::test]
async fn a_changed_tile_is_found() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(&home.path().join("tree.db"), MIGRATIONS).unwrap();
    let work = |tx: &mut Tx<'_>| {
        write(tx, 1, 600, true);
        let walk = |tx: &Tx<'_>| {
            let mut forest = Forest::default();
            (1..=600).find_map(|seq| forest.push(tx, &chained(seq)).unwrap().err())
        };
        // Control: as it was written.
        assert_eq!(walk(tx), None);
        tx.execute("UPDATE tile SET hash = zeroblob(32) WHERE place = 1", params![])?;
        assert_eq!(walk(tx).unwrap().seq, 257);
        Ok(())
    };
    store.write(Grade::Normal, work).await.unwrap();
}
