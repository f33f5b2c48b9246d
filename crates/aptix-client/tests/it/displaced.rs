//! Another process writes to a file that a batch has replaced or removed, through a descriptor that it held open: the write
//! is a displaced write, kept and named. The program under test is a process here.

use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command_line::{aptix, text};
use crate::faults::{self, Fault, Receipt};

/// How another process opens the file and writes to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Editor {
    /// `O_RDWR | O_APPEND`.
    Appends,
    /// `O_WRONLY`: writes its whole buffer over the old one.
    Overwrites,
    /// `O_WRONLY`, cut to nothing before it is written.
    Truncates,
}

impl Editor {
    const ALL: [Self; 3] = [Self::Appends, Self::Overwrites, Self::Truncates];

    fn open(self, path: &Path) -> std::fs::File {
        let mut options = std::fs::File::options();
        match self {
            Self::Appends => options.read(true).append(true),
            Self::Overwrites | Self::Truncates => options.write(true),
        };
        options.open(path).unwrap()
    }

    /// Writes; returns what the file holds then.
    fn write(self, file: &mut std::fs::File, mark: &str) -> String {
        match self {
            Self::Appends => {
                file.write_all(mark.as_bytes()).unwrap();
                format!("old\n{mark}")
            }
            Self::Overwrites | Self::Truncates => {
                if self == Self::Truncates {
                    file.set_len(0).unwrap();
                }
                file.rewind().unwrap();
                file.write_all(format!("edited\n{mark}").as_bytes()).unwrap();
                format!("edited\n{mark}")
            }
        }
    }
}

/// Runs a command that must succeed.
fn done(place: &Path, arguments: &[&str], document: &str) -> Value {
    let output = aptix(place, arguments, document);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {} {}", text(&output.stdout), text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn apply(place: &Path, document: &str) -> Value {
    done(place, &["apply", "--yes", "--json"], document)
}

/// The displaced writes that the log names: path in the root, and the kept copy.
pub(crate) fn logged(place: &Path) -> Vec<(String, PathBuf)> {
    let log = done(place, &["log", "--json"], "");
    let writes =
        log["displacedWrites"].as_array().unwrap_or_else(|| panic!("the log names no displaced writes: {log}"));
    let row = |write: &Value| (write["path"].as_str().unwrap().to_owned(), write["keptAs"].as_str().unwrap().into());
    writes.iter().map(row).collect()
}

const REPLACE: &str = r#"{"files": [{"path": "a.txt", "operation": "replace", "content": "new\n"}]}"#;
const DELETE: &str = r#"{"files": [{"path": "a.txt", "operation": "delete"}]}"#;
const CREATE: &str = r#"{"files": [{"path": "b.txt", "operation": "create", "content": "b\n"}]}"#;
const RENAME: &str = "diff --git a/a.txt b/dir/c.txt\nsimilarity index 100%\nrename from a.txt\nrename to dir/c.txt\n";

fn lay_out(place: &Path) -> PathBuf {
    std::fs::create_dir_all(place.join("ws/dir")).unwrap();
    let file = place.join("ws/a.txt");
    std::fs::write(&file, "old\n").unwrap();
    file
}

#[test]
fn a_displaced_write_is_kept_and_named_by_the_log_and_by_the_next_result() {
    for document in [REPLACE, DELETE, RENAME] {
        for editor in Editor::ALL {
            let place = tempfile::tempdir().unwrap();
            let mut file = editor.open(&lay_out(place.path()));
            let applied = apply(place.path(), document);
            assert_eq!(applied["warnings"], Value::Array(Vec::new()), "{applied}");
            let expected = editor.write(&mut file, "mine\n");
            let what = format!("{editor:?}, {document}");

            let next = apply(place.path(), CREATE);
            let warnings = next["warnings"].as_array().unwrap();
            assert_eq!((warnings.len(), &warnings[0]["code"]), (1, &"DISPLACED_WRITE".into()), "{what}: {next}");
            let [(path, kept)] = <[_; 1]>::try_from(logged(place.path())).unwrap();
            assert_eq!(path, "a.txt", "{what}");
            let message = warnings[0]["message"].as_str().unwrap();
            assert!(message.contains("a.txt") && message.contains(kept.to_str().unwrap()), "{what}: {message}");
            assert_eq!(std::fs::read_to_string(&kept).unwrap(), expected, "{what}");

            // The result names it once, the log as long as it is there; what is written later is in the same copy.
            file.write_all(b"more\n").unwrap();
            assert_eq!(done(place.path(), &["undo", "--yes", "--json"], "")["warnings"].as_array().unwrap().len(), 0);
            assert_eq!(logged(place.path()), [("a.txt".to_owned(), kept.clone())], "{what}");
            assert_eq!(std::fs::read_to_string(&kept).unwrap(), format!("{expected}more\n"), "{what}");
            std::fs::remove_file(&kept).unwrap();
            assert_eq!(logged(place.path()), [], "{what}");
        }
    }
}

#[test]
fn text_output_names_a_displaced_write_whether_the_batch_is_applied_or_refused() {
    for refused in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let mut file = Editor::Appends.open(&lay_out(place.path()));
        apply(place.path(), REPLACE);
        file.write_all(b"mine\n").unwrap();
        let document = if refused { r#"{"files": [{"path": "none", "operation": "delete"}]}"# } else { CREATE };
        let output = aptix(place.path(), &["apply", "--yes"], document);
        assert_eq!(output.status.code(), Some(i32::from(refused)));
        let said = text(&output.stderr) + &text(&output.stdout);
        let kept = logged(place.path()).remove(0).1;
        assert!(said.contains("DISPLACED_WRITE") && said.contains(kept.to_str().unwrap()), "{said}");
        let listed = text(&aptix(place.path(), &["log"], "").stdout);
        assert!(listed.contains("displaced write") && listed.contains(kept.to_str().unwrap()), "{listed}");
    }
}

#[test]
fn undo_displaces_as_apply_does() {
    for editor in Editor::ALL {
        let place = tempfile::tempdir().unwrap();
        let path = lay_out(place.path());
        apply(place.path(), REPLACE);
        let mut file = editor.open(&path);
        done(place.path(), &["undo", "--yes", "--json"], "");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old\n");
        editor.write(&mut file, "mine\n");
        let [(_, kept)] = <[_; 1]>::try_from(logged(place.path())).unwrap();
        assert!(std::fs::read_to_string(&kept).unwrap().ends_with("mine\n"), "{editor:?}");
    }
}

#[test]
fn a_file_that_has_another_name_is_written_there_and_nothing_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let path = lay_out(place.path());
    let other = place.path().join("ws/other.txt");
    std::fs::hard_link(&path, &other).unwrap();
    let mut file = Editor::Appends.open(&path);
    apply(place.path(), REPLACE);
    file.write_all(b"mine\n").unwrap();
    assert_eq!(logged(place.path()), []);
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "old\nmine\n");
    // The other name is the only one again: nothing of ours holds the file.
    assert_eq!(std::os::unix::fs::MetadataExt::nlink(&other.metadata().unwrap()), 1);
}

/// What this thread has read so far.
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn what_a_batch_reads_does_not_grow_with_the_displaced_files() {
    let (place, _) = faults::laid_out();
    let (workspace, _) = faults::open(place.path(), Fault::None).unwrap();
    let write = |count: usize, text: &str| {
        let files = (0..count).map(|number| faults::write(&format!("many/{number}.txt"), text, true));
        let batch = faults::batch_of(files);
        faults::commit(&workspace, &batch, Receipt::Kept).unwrap();
    };
    ["1", "2", "3"].iter().for_each(|text| write(300, text));
    write(1, "4");
    let before = bytes_read();
    write(1, "5");
    let index = index(&place.path().join("state"));
    let (read, length) = (bytes_read() - before, index.metadata().unwrap().len());
    assert!(length > 150_000 && read < length / 4, "{read} bytes of an index of {length}");
}

fn index(state: &Path) -> PathBuf {
    let roots = std::fs::read_dir(state.join("aptix/roots")).unwrap();
    let mut indexes = roots.map(|root| root.unwrap().path().join("displaced/index-1"));
    indexes.find(|index| index.exists()).unwrap()
}
