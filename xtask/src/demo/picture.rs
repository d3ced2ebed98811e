//! The README's picture: the demo's run on a terminal of its own, as SVG. It understands what the program
//! sends to a terminal and nothing more, and refuses the rest, so that the picture shows what a person would
//! see.

use anyhow::{Context as _, Result, bail};
use std::{fmt::Write as _, path::Path, process::Command};

/// Cells of a row.
const COLUMNS: usize = 100;
/// A cell, in the picture's units.
const CELL: (f32, usize) = (8.4, 18);
/// What is left free around the text.
const MARGIN: usize = 14;

/// Runs the command on a terminal and draws what is on it at the end, below the line that a person would have
/// typed.
pub(super) fn draw(command: &Command, typed: &str, to: &Path) -> Result<()> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> =
        words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"))).collect();
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command"]);
    script.arg(format!("stty cols {COLUMNS} rows 200; exec {}", words.join(" "))).arg("/dev/null");
    let output =
        script.env("TERM", "xterm").env_remove("NO_COLOR").output().context("cannot run `script`")?;
    if !output.status.success() {
        bail!("the run failed: {}", String::from_utf8_lossy(&output.stdout));
    }
    let mut screen = Screen::default();
    screen.take(&format!("\x1b[1m$ {typed}\x1b[0m\n"))?;
    screen.take(&String::from_utf8(output.stdout)?)?;
    std::fs::write(to, screen.svg())?;
    println!("{}: {} rows", to.display(), screen.rows.len());
    Ok(())
}

/// A terminal's rows, each cell with its style's number.
#[derive(Default)]
struct Screen {
    rows: Vec<Vec<(char, u8)>>,
    row: usize,
    column: usize,
    style: u8,
}

impl Screen {
    fn take(&mut self, text: &str) -> Result<()> {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            match c {
                '\n' => (self.row, self.column) = (self.row + 1, 0),
                '\r' => self.column = 0,
                '\x1b' => {
                    let end = rest.find(|c: char| c.is_ascii_alphabetic()).context("a cut sequence")?;
                    let (sequence, after) = rest.split_at(end + 1);
                    self.sequence(sequence)?;
                    rest = after;
                }
                c if c.is_control() => bail!("the program sent {c:?} to the terminal"),
                c => self.put(c),
            }
        }
        Ok(())
    }

    fn put(&mut self, c: char) {
        self.rows.resize(self.rows.len().max(self.row + 1), Vec::new());
        let Some(row) = self.rows.get_mut(self.row) else { return };
        row.resize(row.len().max(self.column + 1), (' ', 0));
        if let Some(cell) = row.get_mut(self.column) {
            *cell = (c, self.style);
        }
        self.column += 1;
    }

    fn sequence(&mut self, sequence: &str) -> Result<()> {
        let number = sequence.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(1);
        match sequence.chars().next_back() {
            Some('m') => self.style = u8::try_from(number)?,
            Some('A') => self.row = self.row.saturating_sub(number),
            Some('J') => {
                self.rows.truncate(self.row + 1);
                self.rows.get_mut(self.row).into_iter().for_each(|row| row.truncate(self.column));
            }
            // Pastes are marked while a question is open: nothing to be seen.
            Some('h' | 'l') if number == 2004 => {}
            _ => bail!("the program sent an escape that this picture does not know: {sequence:?}"),
        }
        Ok(())
    }

    fn svg(&self) -> String {
        let width = (COLUMNS as f32 * CELL.0) as usize + 2 * MARGIN;
        let height = self.rows.len() * CELL.1 + 2 * MARGIN;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-size=\"14\" \
             font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\">\n{STYLE}\
             <rect width=\"100%\" height=\"100%\" rx=\"8\" class=\"b\"/>\n"
        );
        for (at, row) in self.rows.iter().enumerate() {
            let y = MARGIN + at * CELL.1 + 13;
            let mut runs: Vec<(usize, u8, String)> = Vec::new();
            for (column, (c, style)) in row.iter().enumerate() {
                match runs.last_mut() {
                    Some((_, last, run)) if last == style => run.push(*c),
                    _ => runs.push((column, *style, c.to_string())),
                }
            }
            for (column, style, run) in runs.iter().filter(|(.., run)| !run.trim().is_empty()) {
                let x = MARGIN as f32 + *column as f32 * CELL.0;
                let length = run.chars().count() as f32 * CELL.0;
                let run = run.replace('&', "&amp;").replace('<', "&lt;");
                // Writing to a string cannot fail.
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{y}\" class=\"s{style}\" textLength=\"{length:.1}\" \
                     xml:space=\"preserve\">{run}</text>"
                );
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Whoever reads on a bright page gets a bright picture.
const STYLE: &str = "<style>
.b{fill:#16181d}text{fill:#d8dae0}.s1{font-weight:bold}.s2{fill:#8b90a0}.s31{fill:#ff7b72}.s32{fill:#7ec77b}
.s33{fill:#e3b341}.s35{fill:#d2a8ff}.s36{fill:#56c2d6}
@media(prefers-color-scheme:light){.b{fill:#f6f7f9}text{fill:#24292f}.s2{fill:#6a7180}.s31{fill:#c0352b}
.s32{fill:#2a7a33}.s33{fill:#8a6100}.s35{fill:#7a3fb8}.s36{fill:#0b7285}}
</style>
";
