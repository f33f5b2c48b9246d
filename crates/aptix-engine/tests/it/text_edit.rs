//! The one canonical edit, by itself.

use aptix_engine::text_edit::{OverlapError, TextEdit};

/// Overlapping, unsorted and reversed replacements are no edit; touching ones are one.
#[test]
fn an_edit_is_sorted_and_disjoint() {
    assert_eq!(TextEdit::new([(0..3, "x"), (2..4, "y")]), Err(OverlapError { range: 2..4, end: 3 }));
    assert!(TextEdit::new([(5..6, "x"), (2..4, "y")]).is_err());
    #[expect(clippy::reversed_empty_ranges, reason = "it is what is refused")]
    let reversed = TextEdit::new([(3..2, "x")]);
    assert!(reversed.is_err());
    let touching = TextEdit::new([(0..1, "x"), (1..1, "y"), (1..2, "z"), (3..3, "")]).unwrap();
    assert_eq!(touching.replacements().collect::<Vec<_>>(), [(0..2, &b"xyz"[..])]);
    assert_eq!(touching.apply(b"abcd"), b"xyzcd");
}

/// An edit that was made for another base does not panic.
#[test]
fn ranges_beyond_the_base_are_empty() {
    let edit = TextEdit::new([(5..9, "x")]).unwrap();
    assert_eq!(edit.apply(b"ab").last(), Some(&b'x'));
    assert!(!edit.is_identity(b"ab"));
    let _ = edit.invert(b"ab").apply(b"ab");
}
