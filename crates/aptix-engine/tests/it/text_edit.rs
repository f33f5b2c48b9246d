//! The one canonical edit, by itself.

use aptix_engine::text::edit::{OverlapError, TextEdit};

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

/// An edit that was made for a longer base keeps what there is of the base, and adds its text at the end.
#[test]
fn ranges_end_where_the_base_does() {
    for range in [5..9, 2..usize::MAX, usize::MAX - 1..usize::MAX, usize::MAX..usize::MAX] {
        let edit = TextEdit::new([(range.clone(), "x")]).unwrap();
        assert_eq!(edit.apply(b"ab"), b"abx", "{range:?}");
        assert!(!edit.is_identity(b"ab"));
        assert_eq!(edit.invert(b"ab").apply(b"abx"), b"ab", "{range:?}");
        assert_eq!(edit.then(&TextEdit::default()).apply(b"ab"), b"abx");
    }
    let edit = TextEdit::new([(1..9, "x"), (20..30, "y")]).unwrap();
    assert_eq!(edit.apply(b"ab"), b"axy");
    assert_eq!(edit.invert(b"ab").apply(b"axy"), b"ab");
    assert!(TextEdit::new([(9..10, "")]).unwrap().is_identity(b"ab"));
}
