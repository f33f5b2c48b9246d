//! A progress line on the terminal: shown after a second, rewritten while the work goes on, cleared before anything else is
//! printed.
//!
//! There is one terminal and one line on it, for all threads.

use std::io::{IsTerminal, Write};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

/// How long work takes before it gets a line.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line is rewritten.
const EVERY: Duration = Duration::from_millis(250);

/// Work that may take long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    /// What an earlier command left is brought to an end, or another command is waited for.
    Opening,
    /// So many files are read, and what becomes of them is planned.
    Planning(usize),
    /// So many files are written.
    Writing(usize),
    /// So many of these bytes have been sent.
    Uploading(usize, usize),
    /// The server is to say how a batch ended.
    Waiting,
}

static LINE: Mutex<Line> = Mutex::new(Line { doing: None, width: 0 });

fn line() -> MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets what is being done from now on. More of the same kind continues its time.
pub(super) fn begin(doing: Doing) {
    line().begin(doing, Instant::now());
}

/// Ends the work, and clears the line.
pub(super) fn end() {
    let mut line = line();
    line.doing = None;
    line.clear(&mut std::io::stderr().lock());
}

/// Clears the line for other output; it is drawn again.
pub(super) fn make_way() {
    line().clear(&mut std::io::stderr().lock());
}

/// Waits for work, and updates the line meanwhile if stderr is a terminal.
pub(super) async fn shown_while<T>(work: impl Future<Output = T>) -> T {
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    let mut work = pin!(work);
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                end();
                return done;
            }
            _ = ticks.tick() => line().draw(&mut std::io::stderr().lock(), Instant::now()),
        }
    }
}

/// The line, and how many columns of it are on the terminal.
#[derive(Debug)]
struct Line {
    doing: Option<(Doing, Instant)>,
    width: usize,
}

impl Line {
    fn begin(&mut self, doing: Doing, now: Instant) {
        let is_same = |was: &(Doing, Instant)| std::mem::discriminant(&was.0) == std::mem::discriminant(&doing);
        let began = self.doing.filter(is_same).map_or(now, |(_, began)| began);
        self.doing = Some((doing, began));
    }

    // A terminal that is gone sees no line, and that is all.
    fn draw(&mut self, terminal: &mut impl Write, now: Instant) {
        let Some((doing, began)) = self.doing else { return };
        let Some(text) = text(doing, now.saturating_duration_since(began)) else { return };
        let _ = write!(terminal, "\r{text:<width$}", width = self.width).and_then(|()| terminal.flush());
        self.width = self.width.max(text.len());
    }

    fn clear(&mut self, terminal: &mut impl Write) {
        let width = std::mem::take(&mut self.width);
        if width > 0 {
            // Blanks, since not every terminal knows how to clear a line.
            let _ = write!(terminal, "\r{:width$}\r", "").and_then(|()| terminal.flush());
        }
    }
}

/// The line for work that has taken so long already; `None` until it is worth one.
fn text(doing: Doing, taken: Duration) -> Option<String> {
    let files = |count: usize| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    let what = match doing {
        Doing::Opening => "opening the workspace".to_owned(),
        Doing::Planning(count) => format!("reading {}", files(count)),
        Doing::Writing(count) => format!("writing {}", files(count)),
        Doing::Uploading(sent, all) => format!("uploading, {} of {} MiB sent", sent >> 20, all.div_ceil(1 << 20)),
        Doing::Waiting => "waiting for the batch to end".to_owned(),
    };
    (taken >= PATIENCE).then(|| format!("{what}, {} s", taken.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_said_in_a_few_words() {
        let said = |doing, milliseconds| text(doing, Duration::from_millis(milliseconds));
        assert_eq!(said(Doing::Writing(300), 999), None);
        assert_eq!(said(Doing::Writing(300), 1000).unwrap(), "writing 300 files, 1 s");
        assert_eq!(said(Doing::Planning(1), 61_900).unwrap(), "reading 1 file, 61 s");
        assert_eq!(said(Doing::Uploading(3 << 20, (9 << 20) + 1), 2000).unwrap(), "uploading, 3 of 10 MiB sent, 2 s");
        assert_eq!(said(Doing::Waiting, 1500).unwrap(), "waiting for the batch to end, 1 s");
    }

    #[test]
    fn the_line_is_written_over_and_leaves_nothing() {
        let (mut line, mut terminal) = (Line { doing: None, width: 0 }, Vec::new());
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        line.clear(&mut terminal);
        line.draw(&mut terminal, start);
        line.begin(Doing::Uploading(0, 20 << 20), start);
        line.draw(&mut terminal, start);
        assert!(terminal.is_empty());
        line.begin(Doing::Uploading(15 << 20, 20 << 20), at(1));
        line.draw(&mut terminal, at(2));
        // Something else begins, and is worth a line once it has taken long itself.
        line.begin(Doing::Writing(1), at(2));
        line.draw(&mut terminal, at(2));
        line.draw(&mut terminal, at(3));
        line.clear(&mut terminal);
        line.clear(&mut terminal);
        let long = "uploading, 15 of 20 MiB sent, 2 s";
        let expected = format!("\r{long}\r{:<33}\r{:33}\r", "writing 1 file, 1 s", "");
        assert_eq!(String::from_utf8(terminal).unwrap(), expected);
    }
}
