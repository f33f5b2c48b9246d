//! Items of a JSON document that do not have their type. Each is named, and the rest of the document is read without it.

use core::ops::Range;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::dialect::Parsed;
use super::noted::Step;
use crate::batch::PartialBatch;
use crate::failure::Failure;

/// Bytes that are read at most to find further items.
const WORK: usize = 64 << 20;

/// What is wrong with the type of a value in a text, and the way to it; `None` if every value has its type.
pub(super) type Misfit = fn(&str) -> Option<(Failure, Vec<Step>)>;

/// Everything that is wrong with the shape of a document, and the file patches with which nothing is. `put` gives a failure the
/// position of the item that it is about, and of the item in a list of that one.
pub(super) fn read_rest(
    text: &str,
    parse: fn(&str) -> Parsed,
    misfit: Misfit,
    put: impl Fn(Failure, usize, Option<usize>) -> Failure,
) -> Option<PartialBatch> {
    let (mut text, mut work) = (text.to_owned(), WORK);
    let (mut failures, mut places) = (Vec::new(), Vec::new());
    while let Some((failure, path)) = misfit(&text) {
        let item = Item::at(&path).and_then(|item| Some((item.range(&text)?, item)));
        let left = work.checked_sub(text.len());
        let (Some((range, item)), Some(left)) = (item, left) else {
            // Of the document itself, or nothing more is looked for.
            failures.push(failure);
            return Some(failures.into());
        };
        work = left;
        failures.push(put(failure, item.index, item.inner));
        places.push(item.place());
        text = without(&text, range)?;
    }
    if failures.is_empty() {
        return None;
    }
    let rest = parse(&text).err()?;
    // An item that was taken out lacks everything.
    let is_in = |field: &str, place: &String| {
        field.strip_prefix(place.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let is_of_rest = |failure: &Failure| {
        let field = failure.field.as_deref().unwrap_or_default();
        !places.iter().any(|place| is_in(field, place))
    };
    failures.extend(rest.failures.into_iter().filter(is_of_rest));
    failures.sort_by_key(|failure| failure.file_index);
    Some(PartialBatch { failures, ..rest })
}

/// An item of the document's list, which is the document itself or a field of it.
struct Item<'p> {
    list: Option<&'p str>,
    index: usize,
    /// Position of the value in a list of the item, or of what it is in there.
    inner: Option<usize>,
}

impl<'p> Item<'p> {
    /// The item that a value is in.
    fn at(path: &'p [Step]) -> Option<Self> {
        let (list, index, rest) = match path {
            [Step::Item(index), rest @ ..] => (None, *index, rest),
            [Step::Field(list), Step::Item(index), rest @ ..] => (Some(list.as_str()), *index, rest),
            _ => return None,
        };
        let inner = if let [Step::Field(_), Step::Item(inner), ..] = rest { Some(*inner) } else { None };
        Some(Self { list, index, inner })
    }

    /// Its name as fields of failures have it.
    fn place(&self) -> String {
        format!("{}[{}]", self.list.unwrap_or_default(), self.index)
    }

    /// Where it is in the text.
    fn range(&self, text: &str) -> Option<Range<usize>> {
        let list = match self.list {
            None => text,
            Some(list) => serde_json::from_str::<BTreeMap<String, &RawValue>>(text).ok()?.get(list)?.get(),
        };
        let items: Vec<&RawValue> = serde_json::from_str(list).ok()?;
        let item = items.get(self.index)?.get();
        let start = (item.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        Some(start..start + item.len())
    }
}

/// The text with an empty object in the place of a value; whatever follows keeps its line and column.
fn without(text: &str, range: Range<usize>) -> Option<String> {
    let (above, value, below) = (text.get(..range.start)?, text.get(range.clone())?, text.get(range.end..)?);
    let (_, rest) = value.split_at_checked(2)?;
    let blanks = rest.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' });
    Some([above, "{}", &blanks.collect::<String>(), below].concat())
}
