//! TUL-002 5 and 6: what insert, replace and delete do to the bytes of a file.

use aptix_engine::text::line_changes::LineChange;
use aptix_model::batch::Batch;
use aptix_model::limits::Limits;
use aptix_model::report::ChangeReport;

use crate::boundary::{apply, apply_all, batch, check, check_refused, delete, insert, line_patch, replace};
use crate::cost::assert_linear;

/// TUL-002-5.2.1, TUL-002-5.2.2, TUL-002-5.2.3, L7, L9, L15, L23: inserts.
#[test]
fn insert_puts_complete_lines_below_a_line() {
    check("a\nb\n", &[insert(1, &["x"])], "a\nx\nb\n");
    check("a\nb\n", &[insert(0, &["x", "y"])], "x\ny\na\nb\n");
    check("a\nb\n", &[insert(2, &["x"])], "a\nb\nx\n");
    check("", &[insert(0, &["x"])], "x\n");
    check("a\n", &[insert(1, &[""])], "a\n\n");
    check("a\nb\n", &[insert(1, &["x"]), insert(1, &["y"])], "a\nx\ny\nb\n");
}

/// TUL-002-5.3.1, TUL-002-5.3.2, TUL-002-5.3.3, TUL-002-5.3.6, L13: replaces.
#[test]
fn replace_puts_complete_lines_in_place_of_others() {
    check("a\nb\nc\n", &[replace(2, 2, &["b"], &["x"])], "a\nx\nc\n");
    check("a\nb\nc\n", &[replace(1, 2, &["a", "b"], &["x"])], "x\nc\n");
    check("a\nb\nc\n", &[replace(2, 3, &["b", "c"], &["x", "y", "z"])], "a\nx\ny\nz\n");
    check("a\nb\nc\n", &[replace(2, 2, &["b"], &[""])], "a\n\nc\n");
    check("a\nb\nc\n", &[replace(1, 2, &["a", "b"], &["x"]), replace(3, 3, &["c"], &["z"])], "x\nz\n");
}

/// TUL-002-5.4.1, TUL-002-5.4.2: deletes.
#[test]
fn delete_takes_complete_lines_out() {
    check("a\nb\nc\n", &[delete(2, 2, &["b"])], "a\nc\n");
    check("a\nb\nc\n", &[delete(1, 3, &["a", "b", "c"])], "");
    check("a\n\nc\n", &[delete(2, 3, &["", "c"])], "a\n");
}

/// TUL-002-6.1, L14: numbers are those of the file as it was; an insert may touch a range at either end, and may be
/// listed before or after a change of the very line it comes after.
#[test]
fn changes_of_one_file_do_not_shift_each_other() {
    let before = "1\n2\n3\n4\n5\n";
    let changes = [insert(0, &["0"]), replace(2, 3, &["2", "3"], &["x"]), insert(3, &["y", "z"]), delete(5, 5, &["5"])];
    check(before, &changes, "0\n1\nx\ny\nz\n4\n");
    check(before, &[insert(1, &["y"]), replace(2, 2, &["2"], &["x"])], "1\ny\nx\n3\n4\n5\n");
    check(before, &[replace(2, 2, &["2"], &["x"]), insert(2, &["y"])], "1\nx\ny\n3\n4\n5\n");
    check(before, &[insert(2, &["y"]), replace(2, 2, &["2"], &["x"])], "1\nx\ny\n3\n4\n5\n");
}

/// TUL-002-5.1.7, TUL-002-6.3, TUL-002-6.4, L28, L29: a line is what precedes its terminator, whatever the
/// terminator is; a new line is ended like its neighbour.
#[test]
fn terminators_are_kept_and_taken_from_the_neighbour() {
    check("a\r\nb\r\nc\r\n", &[replace(2, 2, &["b"], &["x"])], "a\r\nx\r\nc\r\n");
    check("a\r\nb\nc\r\n", &[replace(1, 3, &["a", "b", "c"], &["x", "y", "z"])], "x\r\ny\nz\r\n");
    check("a\nb\r\nc\n", &[replace(1, 2, &["a", "b"], &["x", "y", "z"])], "x\ny\r\nz\r\nc\n");
    check("a\r\nb\n", &[insert(1, &["x"])], "a\r\nx\r\nb\n");
    check("a\r\nb\n", &[insert(2, &["x"])], "a\r\nb\nx\n");
    check("a\r\nb\n", &[insert(0, &["x"])], "x\r\na\r\nb\n");
    check("a\r\nb\n", &[delete(1, 1, &["a"])], "b\n");
    // A carriage return alone, and what only Unicode calls a line break, is text.
    check("a\rb\nc\n", &[replace(1, 1, &["a\rb"], &["x"])], "x\nc\n");
    check("a\r\r\nb\n", &[replace(1, 1, &["a\r"], &["x"])], "x\r\nb\n");
    check(
        "a\u{2028}b\u{85}\u{b}\u{c}\nc\n",
        &[replace(2, 2, &["c"], &["x\u{2028}"])],
        "a\u{2028}b\u{85}\u{b}\u{c}\nx\u{2028}\n",
    );
}

/// L31: a file whose last line has no terminator keeps it that way, whatever lines come or go.
#[test]
fn unterminated_stays_unterminated() {
    check("a\nb", &[replace(2, 2, &["b"], &["x"])], "a\nx");
    check("a\r\nb", &[replace(2, 2, &["b"], &["x", "y"])], "a\r\nx\r\ny");
    check("a\r\nb", &[insert(2, &["x"])], "a\r\nb\r\nx");
    check("a", &[insert(1, &["x"]), insert(1, &["y"])], "a\nx\ny");
    check("a", &[insert(0, &["x"])], "x\na");
    check("a\nb", &[insert(1, &["x"])], "a\nx\nb");
    check("a\nb\nc", &[delete(3, 3, &["c"])], "a\nb");
    check("a\r\nb", &[delete(2, 2, &["b"])], "a");
    check("a\r\nb\nc", &[delete(2, 3, &["b", "c"])], "a");
    check("a\nb\nc", &[replace(2, 2, &["b"], &["x"]), delete(3, 3, &["c"])], "a\nx");
    check("a\nb\nc", &[delete(2, 2, &["b"]), delete(3, 3, &["c"])], "a");
    check("a\nb\nc\nd", &[delete(1, 1, &["a"]), delete(3, 4, &["c", "d"])], "b");
    check("a\nb", &[delete(2, 2, &["b"]), insert(2, &["x"])], "a\nx");
    check("a\nb", &[replace(2, 2, &["b"], &["x"]), insert(2, &["y"])], "a\nx\ny");
    check("a\r\nb\nc", &[replace(1, 3, &["a", "b", "c"], &["x"])], "x");
    check("a", &[delete(1, 1, &["a"])], "");
    check("a\n\nb", &[delete(1, 1, &["a"]), delete(3, 3, &["b"])], "");
}

/// L31: a blank line that is left last in an unterminated file does not show; the report counts the lines that do.
#[test]
fn a_last_blank_line_that_does_not_show_is_reported() {
    for (before, change, after, place) in [
        ("a\n\nb", delete(3, 3, &["b"]), "a\n", (2, 1)),
        ("a\nb", insert(2, &[""]), "a\nb\n", (3, 2)),
        ("a\r\nb", insert(2, &["x", ""]), "a\r\nb\r\nx\r\n", (3, 3)),
        ("a\nb", replace(2, 2, &["b"], &[""]), "a\n", (2, 1)),
        ("\u{feff}b", replace(1, 1, &["b"], &[""]), "\u{feff}", (1, 0)),
        ("\nb", delete(2, 2, &["b"]), "", (1, 0)),
    ] {
        let applied = apply(line_patch(before.as_bytes(), &[change]), Some(before.as_bytes())).unwrap();
        assert_eq!(String::from_utf8(applied.content).unwrap(), after);
        let change = applied.report.changes[0];
        assert_eq!((change.start_line, change.end_line), place, "{before:?}");
        assert_eq!(applied.report.warnings.len(), 1, "{before:?}");
        assert_eq!(applied.report.warnings[0].code, "FINAL_BLANK_LINE");
    }
    for (before, change) in [
        ("a\nb", delete(2, 2, &["b"])),
        ("b", delete(1, 1, &["b"])),
        ("a\nb\n", insert(2, &[""])),
        ("", insert(0, &[""])),
    ] {
        let applied = apply(line_patch(before.as_bytes(), &[change]), Some(before.as_bytes())).unwrap();
        assert_eq!(applied.report.warnings, [], "{before:?}");
    }
}

/// L29, TUL-002-6.3: a carriage return at the end of an unterminated file is text, and stays that of its line.
#[test]
fn a_last_carriage_return_stays_text() {
    check("a\nb\r", &[insert(2, &["x", "y"])], "a\nb\r\r\nx\ny");
    check("b\r", &[insert(1, &["x"])], "b\r\r\nx");
    check("a\nb\r", &[replace(2, 2, &["b\r"], &["x", "y"])], "a\nx\ny");
    check("a\r\nb\r", &[insert(1, &["x"])], "a\r\nx\r\nb\r");
}

/// L33: the byte order mark is no part of line 1 and stays first.
#[test]
fn a_byte_order_mark_stays_first() {
    check("\u{feff}a\nb\n", &[replace(1, 1, &["a"], &["x"])], "\u{feff}x\nb\n");
    check("\u{feff}a\n", &[insert(0, &["x"])], "\u{feff}x\na\n");
    check("\u{feff}", &[insert(0, &["x"])], "\u{feff}x\n");
    check("\u{feff}a", &[delete(1, 1, &["a"])], "\u{feff}");
    check("\u{feff}a\r\nb", &[delete(2, 2, &["b"])], "\u{feff}a");
}

/// L33: a new line makes no byte order mark; where it cannot be taken for one, U+FEFF is text.
#[test]
fn a_new_line_adds_no_byte_order_mark() {
    let new = ["\u{feff}x"];
    for (before, changes) in [
        ("a\n", vec![insert(0, &new)]),
        ("", vec![insert(0, &new)]),
        ("a\n", vec![replace(1, 1, &["a"], &new)]),
        ("a\nb", vec![delete(1, 1, &["a"]), insert(1, &new)]),
    ] {
        let failure = check_refused(before, &changes, "INVALID_REQUEST.EMBEDDED_BOM");
        assert_eq!(failure.change_index, Some(changes.len() - 1));
    }
    check("\u{feff}a\n", &[insert(0, &new)], "\u{feff}\u{feff}x\na\n");
    check("\u{feff}", &[insert(0, &new)], "\u{feff}\u{feff}x\n");
    check("a\n", &[insert(0, &["y"]), insert(0, &new)], "y\n\u{feff}x\na\n");
    check("a\n", &[insert(0, &[""]), replace(1, 1, &["a"], &new)], "\n\u{feff}x\n");
    check("a\nb\n", &[delete(2, 2, &["b"]), insert(2, &new)], "a\n\u{feff}x\n");
}

/// L35: bytes that are no UTF-8 are kept where no change touches them.
#[test]
fn bytes_that_are_no_utf8_are_kept() {
    check(b"\xff\xe9\nb\n\x80", &[replace(2, 2, &["b"], &["x"])], b"\xff\xe9\nx\n\x80");
}

/// The report says where each change is in the new text, in the patch's order.
#[test]
fn the_report_places_each_change_in_the_new_text() {
    let before = b"1\n2\n3\n4\n";
    let changes = [insert(1, &["x", "y"]), replace(1, 1, &["1"], &["w"]), delete(3, 3, &["3"]), insert(4, &["z"])];
    let applied = apply(line_patch(before, &changes), Some(before)).unwrap();
    assert_eq!(applied.content, b"w\nx\ny\n2\n4\nz\n");
    let places: Vec<_> = applied.report.changes.iter().map(|change| (change.start_line, change.end_line)).collect();
    assert_eq!(places, [(2, 3), (1, 1), (5, 4), (6, 6)]);
    assert_eq!(applied.report.status.word(), "modified");
}

/// A patch that changes nothing is no change.
#[test]
fn the_same_lines_again_leave_the_file_unchanged() {
    let before = b"a\nb\n";
    let applied = apply(line_patch(before, &[replace(1, 1, &["a"], &["a"])]), Some(before)).unwrap();
    assert_eq!((applied.report.status.word(), applied.content.as_slice()), ("unchanged", &before[..]));
    assert_eq!(applied.diff, b"");
    let moved = [delete(1, 2, &["a", "b"]), insert(4, &["a", "b"])];
    let before = b"a\nb\na\nb\n";
    let applied = apply(line_patch(before, &moved), Some(before)).unwrap();
    assert_eq!((applied.report.status.word(), applied.diff.as_slice()), ("unchanged", &b""[..]));
}

/// L38: a hundred thousand changes.
#[test]
fn a_hundred_thousand_changes_are_made() {
    let before = "line\n".repeat(100_000);
    let changes: Vec<_> = (1..=100_000).map(|line| replace(line, line, &["line"], &["LINE"])).collect();
    check(before, &changes, "LINE\n".repeat(100_000));
    let changes: Vec<_> = (0..100_000).map(|_| insert(0, &["x"])).collect();
    check("", &changes, "x\n".repeat(100_000));
}

/// L38: time grows with the changes and the lines, and not with their square, whether they fit or not.
#[test]
fn time_grows_with_the_changes_and_not_faster() {
    let scattered = |count: usize, expected: &str| {
        let before = "line\nline\nline\n".repeat(count);
        let lines = (0..count).map(|index| i64::try_from(3 * index + 2).unwrap());
        let changes: Vec<_> = lines.map(|line| replace(line, line, &[expected], &["LINE"])).collect();
        (batch(vec![line_patch(before.as_bytes(), &changes)]), before)
    };
    let at_the_top = |count| {
        let changes: Vec<_> = (0..count).map(|_| insert(0, &["x"])).collect();
        (batch(vec![line_patch(b"", &changes)]), String::new())
    };
    let applied = |(batch, before): &(Batch, String)| {
        apply_all(batch, &[Some(before.as_bytes())], &Limits::DEFAULT).ok().map(|applied| applied.len())
    };
    assert_linear("fitting", 500, |count| scattered(count, "line"), applied);
    assert_linear("not fitting", 500, |count| scattered(count, "other"), applied);
    assert_linear("at the top", 500, at_the_top, applied);
}

/// L38: what is kept of a change is small, beside its texts.
#[test]
fn changes_take_little_room() {
    assert!(size_of::<LineChange<'_>>() <= 40);
    assert!(size_of::<ChangeReport>() <= 16);
}
