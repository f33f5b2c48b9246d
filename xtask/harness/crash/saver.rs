//! Another process that saves files as editors do: by rename, by append, or through a descriptor that it holds open for a
//! while before it writes. Every save carries a mark of its own.

use std::fs::{self, File};
use std::io::{BufRead, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::moment::pass;
use crate::random::Random;

/// Arguments of a saver.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Saver {
    ws: PathBuf,
    files: usize,
    seed: u64,
}

/// How files are saved in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Style {
    /// By rename, or by append, without a pause.
    Quick,
    /// Through a descriptor that is held open before the write.
    Held,
    /// As [`Self::Held`]; no file is ever empty meanwhile.
    Patient,
}

impl Style {
    const fn ways(self) -> &'static [Way] {
        match self {
            Self::Quick => &[Way::Rename, Way::Append],
            Self::Held => &[Way::Append, Way::Append, Way::Overwrite, Way::Overwrite, Way::Truncate, Way::Clear],
            Self::Patient => &[Way::Append, Way::Overwrite, Way::Truncate],
        }
    }
}

/// How one file is saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// A new file takes the name.
    Rename,
    /// `O_RDWR | O_APPEND`.
    Append,
    /// `O_WRONLY`: the whole buffer is written over the old text.
    Overwrite,
    /// `O_WRONLY`: the file is cut to nothing just before the buffer is written.
    Truncate,
    /// `O_WRONLY | O_TRUNC`: the file is empty until the buffer is written.
    Clear,
}

/// The name of a file that is saved.
pub(crate) fn name(file: usize) -> String {
    format!("f{file}.txt")
}

/// What a save adds to a file.
pub(crate) fn mark(round: usize, file: usize) -> String {
    format!("theirs {round}.{file};\n")
}

/// Saves every file once for each line on stdin: `ROUND STYLE WINDOW HELD`, the last two in microseconds. Prints `open` when
/// every file is open that is opened at once, then `saved` with the numbers of the files that were saved.
pub(crate) fn save(args: &Saver) -> Result<()> {
    let mut random = Random::new(args.seed);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let [round, style, window, held] = line.split(' ').collect::<Vec<_>>()[..] else { bail!("no round: {line}") };
        let (round, style) = (round.parse()?, Style::from_str(style, true).map_err(anyhow::Error::msg)?);
        let [window, held]: [usize; 2] = [window.parse()?, held.parse()?];
        let opened = std::sync::Barrier::new(args.files + 1);
        let ways = style.ways();
        let plans: Vec<_> = (0..args.files)
            .map(|file| {
                let way = ways.get(random.below(ways.len())).copied().unwrap_or(Way::Append);
                let [begin, wait] = [window, held].map(|most| Duration::from_micros(random.below(most + 1) as u64));
                (file, way, begin, wait, random.below(4) == 0)
            })
            .collect();
        let is_at_once = window == 0;
        let saved = std::thread::scope(|scope| -> Result<Vec<String>> {
            let savers: Vec<_> = plans
                .iter()
                .map(|plan| {
                    let opened = &opened;
                    scope.spawn(move || {
                        let (file, way, begin, wait, flushes) = *plan;
                        pass(begin);
                        let path = args.ws.join(name(file));
                        let open = open(way, &path);
                        if is_at_once {
                            opened.wait();
                        }
                        let done = open.and_then(|open| {
                            pass(wait);
                            write(way, open, &path, &mark(round, file), flushes)
                        });
                        done.is_ok().then(|| file.to_string())
                    })
                })
                .collect();
            if is_at_once {
                opened.wait();
                writeln!(out, "open")?;
                out.flush()?;
            }
            Ok(savers.into_iter().filter_map(|saver| saver.join().ok().flatten()).collect())
        })?;
        writeln!(out, "saved {}", saved.join(" "))?;
        out.flush()?;
    }
    Ok(())
}

/// What an editor has of a file: the text, and the file itself if it stays open.
struct Buffer {
    text: Vec<u8>,
    file: Option<File>,
}

fn open(way: Way, path: &Path) -> std::io::Result<Buffer> {
    let text = fs::read(path)?;
    let file = match way {
        Way::Rename => None,
        Way::Append => Some(File::options().read(true).append(true).open(path)?),
        Way::Overwrite | Way::Truncate => Some(File::options().write(true).open(path)?),
        Way::Clear => Some(File::options().write(true).truncate(true).open(path)?),
    };
    Ok(Buffer { text, file })
}

fn write(way: Way, open: Buffer, path: &Path, mark: &str, flushes: bool) -> std::io::Result<()> {
    let Buffer { mut text, file } = open;
    text.extend_from_slice(mark.as_bytes());
    let file = match (way, file) {
        (Way::Append, Some(mut file)) => file.write_all(mark.as_bytes()).map(|()| file),
        (way, Some(file)) => {
            if way == Way::Truncate {
                file.set_len(0)?;
            }
            file.write_all_at(&text, 0).map(|()| file)
        }
        (_, None) => {
            let own = path.with_extension("swp");
            fs::write(&own, &text)?;
            fs::rename(&own, path)?;
            return Ok(());
        }
    }?;
    if flushes { file.sync_all() } else { Ok(()) }
}
