//! The fenced blocks of an answer in Markdown, each with its lines, and the prose around them.

use core::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Tags that stand for fences: `<source>python` on a line of its own, up to `</source>` on one.
const TAGS: [&str; 5] = ["source", "code", "pre", "codeblock", "sourcecode"];

/// One fenced block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// The first word behind the opening fence.
    pub(super) tag: String,
    /// All that is there.
    pub(super) info: String,
    /// What is between the fences.
    pub(super) text: String,
    /// The line in the answer that the text begins on.
    pub(super) text_line: usize,
    /// The line of the opening fence in the answer, from 1.
    pub(super) first_line: usize,
    /// The line of the closing fence, or the last one.
    pub(super) last_line: usize,
    pub(super) closing: Closing,
    /// What the opening fence is made of, and how often; nothing where a tag stands for it.
    pub(super) fence: Option<(char, usize)>,
}

impl Block {
    /// A block without fences.
    pub(super) fn unfenced(tag: &str, text: String, (first_line, last_line): (usize, usize)) -> Self {
        Self {
            tag: tag.to_owned(),
            info: String::new(),
            text,
            text_line: first_line,
            first_line,
            last_line,
            closing: Closing::Aligned,
            fence: None,
        }
    }

    /// Its first and its last line.
    pub(super) const fn lines(&self) -> (usize, usize) {
        (self.first_line, self.last_line)
    }

    /// The block within a text in which it begins so many lines further down.
    pub(super) fn below(self, lines: usize) -> Self {
        Self {
            text_line: self.text_line + lines,
            first_line: self.first_line + lines,
            last_line: self.last_line + lines,
            ..self
        }
    }
}

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Closing {
    /// With a fence below the opening one.
    Aligned,
    /// With a fence that is indented otherwise than the opening one.
    Shifted,
    /// An empty one, with the list or quote that it is in.
    Surrounding,
    /// With the answer, or with the list or quote that it is in.
    Missing,
}

/// An answer taken apart.
pub(super) struct Answer {
    /// The fenced blocks, top to bottom.
    pub(super) blocks: Vec<Block>,
    /// The blocks that nothing but their indentation makes blocks.
    pub(super) indented: Vec<Block>,
    /// The first and the last line of each comment.
    pub(super) comments: Vec<(usize, usize)>,
    /// The text outside them, with one blank for all white space between two words.
    pub(super) prose: String,
}

/// Takes an answer apart.
pub(super) fn read(text: &str) -> Answer {
    let (mut blocks, mut indented) = (Vec::new(), Vec::new());
    let mut prose = String::new();
    let mut comments = Vec::new();
    // With what is behind the opening fence, if there is one.
    let mut open: Option<(Option<String>, Vec<Range<usize>>)> = None;
    let mut lines = Lines { text, offset: 0, line: 1 };
    let seen = without_tags(text);
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(&seen, Options::empty()).into_offset_iter() {
        match &event {
            Event::Start(Tag::Item | Tag::BlockQuote(_)) => depth += 1,
            Event::End(TagEnd::Item | TagEnd::BlockQuote(_)) => depth = depth.saturating_sub(1),
            _ => {}
        }
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                open = Some((Some(info.into_string()), Vec::new()));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => open = Some((None, Vec::new())),
            Event::End(TagEnd::CodeBlock) => {
                let Some((info, pieces)) = open.take() else { continue };
                let (inside, span) = (content(text, &pieces), lines.span(&range));
                match info {
                    Some(info) => blocks.push(fenced(text, &range, info, Block::unfenced("", inside, span), depth > 0)),
                    None => indented.push(Block::unfenced("indented", inside, span)),
                }
            }
            // No other tags are left.
            Event::Start(Tag::HtmlBlock) => comments.push(lines.span(&range)),
            Event::Text(words) => match &mut open {
                Some((_, pieces)) => pieces.push(range),
                None => add_words(&mut prose, &words),
            },
            Event::Code(words) => add_words(&mut prose, &words),
            Event::SoftBreak | Event::HardBreak | Event::End(_) => add_words(&mut prose, " "),
            _ => {}
        }
    }
    add_tagged(text, &mut blocks);
    Answer { blocks, indented, comments, prose }
}

/// The block of this range of the text, with its fences; `is_nested` if it is in a list or quote.
fn fenced(text: &str, range: &Range<usize>, info: String, block: Block, is_nested: bool) -> Block {
    let is_surrounded = || {
        is_nested && block.text.trim().is_empty() && text.get(range.end..).is_some_and(|rest| !rest.trim().is_empty())
    };
    let closing = match closing(text, range) {
        Closing::Missing if is_surrounded() => Closing::Surrounding,
        closing => closing,
    };
    Block {
        tag: info.split_whitespace().next().unwrap_or_default().to_owned(),
        info,
        text_line: block.first_line + 1,
        closing,
        fence: opening(at(text, range)),
        ..block
    }
}

/// The part of the text that is a range of the parser's. The parser is shown blanks in the place of an envelope, so a range of
/// blanks may cut a character of the text: then there is nothing of a block in it.
fn at<'t>(text: &'t str, range: &Range<usize>) -> &'t str {
    text.get(range.clone()).unwrap_or_default()
}

/// The pieces of a block put together, with the carriage returns that Markdown drops from the ends of lines.
fn content(text: &str, pieces: &[Range<usize>]) -> String {
    let mut whole = String::new();
    let mut end = None;
    for piece in pieces {
        if end.and_then(|end| text.get(end..piece.start)) == Some("\r") {
            whole.push('\r');
        }
        whole.push_str(at(text, piece));
        end = Some(piece.end);
    }
    whole
}

/// What the opening fence of a block is made of, and how often.
fn opening(block: &str) -> Option<(char, usize)> {
    let opening = block.trim_start_matches(' ');
    let mark = opening.chars().next()?;
    Some((mark, opening.chars().take_while(|character| *character == mark).count()))
}

/// How a block ends that is this range of the text.
fn closing(text: &str, range: &Range<usize>) -> Closing {
    let whole = at(text, range);
    let block = whole.trim_start_matches(' ');
    let start = range.start + whole.len() - block.len();
    let column = text.as_bytes().iter().take(start).rev().take_while(|byte| **byte != b'\n').count();
    let Some((mark, length)) = opening(block) else { return Closing::Missing };
    let Some((_, last)) = block.trim_end_matches(['\r', '\n']).rsplit_once('\n') else { return Closing::Missing };
    let fence = last.trim_start_matches([' ', '\t', '>']);
    let marks = fence.trim_end();
    match marks.len() >= length && marks.chars().all(|character| character == mark) {
        false => Closing::Missing,
        true if last.len() - fence.len() == column => Closing::Aligned,
        true => Closing::Shifted,
    }
}

fn add_words(prose: &mut String, words: &str) {
    for (index, word) in words.split(char::is_whitespace).enumerate() {
        if index > 0 && !prose.ends_with(' ') {
            prose.push(' ');
        }
        prose.push_str(word);
    }
}

/// The text with other letters in the place of the `<` that lines begin with, for to Markdown a tag hides the fences
/// below it. Comments stay hidden.
fn without_tags(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let words = line.trim_start_matches(' ');
        match words.strip_prefix('<') {
            Some(rest) if !rest.starts_with('!') => {
                seen.push_str(line.split_at(line.len() - words.len()).0);
                seen.push('x');
                seen.push_str(rest);
            }
            _ => seen.push_str(line),
        }
    }
    seen
}

/// The tag that a line opens, and the language behind it.
fn opened(line: &str) -> Option<(&'static str, &str)> {
    let (name, language) = line.trim().strip_prefix('<')?.split_once('>')?;
    let tag = TAGS.into_iter().find(|tag| *tag == name)?;
    language.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some((tag, language))
}

/// The tag that a line closes.
fn closed(line: &str) -> Option<&'static str> {
    let name = line.trim().strip_prefix("</")?.strip_suffix('>')?;
    TAGS.into_iter().find(|tag| *tag == name)
}

/// Adds the blocks between tags that are outside all fences; around fences a tag is only a tag.
fn add_tagged(text: &str, blocks: &mut Vec<Block>) {
    let fenced: Vec<_> = blocks.iter().map(Block::lines).collect();
    let mut fenced = fenced.into_iter().peekable();
    let mut open: Option<(&str, Block)> = None;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let number = index + 1;
        while fenced.next_if(|(_, last)| *last < number).is_some() {}
        if fenced.peek().is_some_and(|(first, _)| *first <= number) {
            open = None;
        } else if let Some((_, block)) = open.take_if(|(tag, _)| closed(line) == Some(*tag)) {
            blocks.push(Block { last_line: number, ..block });
        } else if let Some((tag, language)) = opened(line) {
            let block = Block {
                info: language.to_owned(),
                text_line: number + 1,
                ..Block::unfenced(language, String::new(), (number, number))
            };
            open = Some((tag, block));
        } else if let Some((_, block)) = &mut open {
            block.text.push_str(line);
        }
    }
    blocks.sort_by_key(|block| block.first_line);
}

/// Counts lines on the way down.
struct Lines<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
}

impl Lines<'_> {
    /// The number of the line that has the byte at `offset`, which is not above the one asked for before.
    fn number(&mut self, offset: usize) -> usize {
        let passed = self.text.bytes().take(offset).skip(self.offset);
        self.line += passed.filter(|byte| *byte == b'\n').count();
        self.offset = self.offset.max(offset);
        self.line
    }

    /// The first and the last line of a range.
    fn span(&mut self, range: &Range<usize>) -> (usize, usize) {
        (self.number(range.start), self.number(range.end.saturating_sub(1).max(range.start)))
    }
}
