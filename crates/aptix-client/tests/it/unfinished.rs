//! The register of unfinished batches: a root that was moved in the middle of one is recovered whatever became of the register,
//! and no command opens every root ever used.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use aptix_client::workspace::roots::workspace::Workspace;
use aptix_engine::digest::sha256;

use crate::faults::{self, Fault, FaultyDisk, Receipt};
use crate::looks::looks;
use crate::skip::skip;
use crate::tree;

fn open(place: &Path, root: &str) -> Workspace {
    let root = place.join(root);
    std::fs::create_dir_all(&root).unwrap();
    let spec = root.to_str().unwrap().parse().unwrap();
    Workspace::open(&[spec], &place.join("state"), Box::new(FaultyDisk::new(Fault::None))).unwrap()
}

fn register(place: &Path) -> PathBuf {
    place.join("state/aptix/unfinished")
}

/// The names of the states that are entered.
fn entered(place: &Path) -> Vec<String> {
    let names = std::fs::read_dir(register(place)).into_iter().flatten();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.len() == 64).collect()
}

/// Something that becomes of the register after a process died.
type Damage = (&'static str, fn(&Path));

const DAMAGES: &[Damage] = &[
    ("nothing", |_| {}),
    ("missing", |place| drop(std::fs::remove_dir_all(register(place)))),
    ("not complete", |place| drop(std::fs::remove_file(register(place).join("complete-1")))),
    ("torn", |place| edit(place, |bytes| bytes.truncate(bytes.len() / 2))),
    ("altered", |place| edit(place, |bytes| bytes[30] ^= 1)),
    ("of another start", |place| {
        let path = register(place).join("complete-1");
        // As after a power cut that has taken what was entered.
        let text = std::fs::read_to_string(&path).unwrap();
        let json = text.trim_end().split_once(' ').unwrap().1.replace("first", "zeroth");
        let sum = sha256(format!("unfinished\n{json}").as_bytes()).to_string();
        std::fs::write(path, format!("{} {json}\n", &sum[..16])).unwrap();
        entered(place).iter().for_each(|name| std::fs::remove_file(register(place).join(name)).unwrap());
    }),
    ("a file", |place| {
        drop(std::fs::remove_dir_all(register(place)));
        std::fs::write(register(place), "").unwrap();
    }),
    ("restored from before the batch", |place| {
        drop(std::fs::remove_dir_all(register(place)));
        let (from, to) = (place.join("backup"), register(place));
        std::fs::create_dir(&to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }),
    ("looked at for other roots", |place| {
        drop(open(place, "other"));
        drop(open(place, "new"));
    }),
    ("looked at anew for other roots", |place| {
        drop(std::fs::remove_dir_all(register(place)));
        drop(open(place, "other"));
    }),
];

fn edit(place: &Path, change: fn(&mut Vec<u8>)) {
    let path = register(place).join("complete-1");
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// A place with roots that were used, and a copy of the register.
fn used() -> tempfile::TempDir {
    let (place, _) = faults::laid_out();
    // A root of that path is known: that it is opened shows no new one.
    drop(open(place.path(), "moved"));
    std::fs::remove_dir(place.path().join("moved")).unwrap();
    drop(open(place.path(), "other"));
    drop(open(place.path(), "ws"));
    // All roots were there before this look.
    drop(open(place.path(), "ws"));
    std::fs::create_dir(place.path().join("backup")).unwrap();
    for name in ["complete-1", "mark"] {
        std::fs::copy(register(place.path()).join(name), place.path().join("backup").join(name)).unwrap();
    }
    place
}

#[test]
fn a_root_that_was_moved_in_the_middle_of_a_batch_is_recovered_whatever_became_of_the_register() {
    let batch = faults::batch(1, 1);
    let place = used();
    let before = tree::read(&place.path().join("ws"));
    let (workspace, count) = faults::open(place.path(), Fault::None).unwrap();
    faults::commit(&workspace, &batch, Receipt::None).unwrap();
    let (after, operations) = (tree::read(&place.path().join("ws")), count.load(Ordering::SeqCst));
    let mut ends = (0, 0);
    for (what, damage) in DAMAGES {
        for last in (0..=operations).step_by(3) {
            let what = format!("{what}, stopped after {last} of {operations}");
            let place = used();
            let Ok((workspace, _)) = faults::open(place.path(), Fault::StopAfter(last)) else { continue };
            let _ = faults::commit(&workspace, &batch, Receipt::None);
            drop(workspace);
            damage(place.path());
            std::fs::rename(place.path().join("ws"), place.path().join("moved")).unwrap();
            drop(open(place.path(), "moved"));
            let now = tree::read(&place.path().join("moved"));
            tree::assert_same(&now, if now == after { &after } else { &before }, &what);
            if now == after {
                ends.1 += 1
            } else {
                ends.0 += 1
            }
            if register(place.path()).is_dir() {
                // The register and what the dead process was writing are cleared by whoever comes next.
                drop(open(place.path(), "ws"));
                drop(open(place.path(), "other"));
                assert!(entered(place.path()).is_empty(), "{what}");
                crate::scenarios::assert_no_debris(place.path(), &what);
            }
        }
    }
    assert!(ends.0 > 0 && ends.1 > 0, "both ends are met: {ends:?}");
}

#[test]
fn a_batch_is_entered_before_anything_is_staged_and_until_another_root_is_opened_without_its_record() {
    let place = used();
    let at = place.path().to_owned();
    let workspace = faults::open_watched(place.path(), Fault::None, move |ws, kind, from, to| {
        let is_record = ["staging", "committed", "finishing"].contains(&from) || to == "staging";
        if is_record || kind == "exchange" {
            // Another process looks at that very moment, and at all roots as well.
            drop(open(&at, "other"));
            assert_eq!(entered(&at).len(), 1, "{kind} {from} {to}");
            let complete = register(&at).join("complete-1");
            std::fs::remove_file(complete).unwrap();
            drop(open(&at, "other"));
            assert_eq!(entered(&at).len(), 1, "{kind} {from} {to} in {}", ws.display());
        }
    });
    faults::commit(&workspace, &faults::batch(2, 1), Receipt::None).unwrap();
    // Opened again, it has nothing to make for its next batch.
    drop(open(place.path(), "ws"));
    assert_eq!(entered(place.path()).len(), 1);
    drop(open(place.path(), "other"));
    assert!(entered(place.path()).is_empty());
    // So it is with one that is refused after it has begun.
    let mut refused = faults::batch(1, 1);
    refused.files[0].target = aptix_model::batch::Target::Path("dir/b.txt/x".to_owned());
    faults::commit(&workspace, &refused, Receipt::None).unwrap_err();
    drop(open(place.path(), "other"));
    assert!(entered(place.path()).is_empty());
}

const DOCUMENT: &str = r#"{"path":"new","content":"x\n","overwrite":true}"#;

#[test]
fn commands_look_at_as_many_files_however_many_roots_were_ever_used() {
    let count = |roots| {
        let place = used();
        (0..roots).for_each(|root| drop(open(place.path(), &format!("root-{root}"))));
        // The first looks at all of them.
        for arguments in [&["apply"][..], &["log", "-n", "20"]] {
            looks(place.path(), arguments, DOCUMENT)?;
        }
        Some((looks(place.path(), &["apply", "--dry-run"], DOCUMENT)?, looks(place.path(), &["log", "-n", "20"], "")?))
    };
    let (Some(few), Some(many)) = (count(1), count(200)) else {
        skip("there is no strace, or it may not trace");
        return;
    };
    // The bytes of a longer list may take one more read.
    let are_near = |few: usize, many: usize| few.abs_diff(many) < 20;
    assert!(are_near(few.0, many.0) && are_near(few.1, many.1), "system calls of apply and log: {few:?}, {many:?}");
}
