//! Columns.

use super::{Screen, Tone, text};

/// Rows under a heading. Each column is as wide as it needs to be; the last gives way where the screen ends.
#[derive(Debug)]
pub(crate) struct Table {
    heading: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
}

/// A piece of a row.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    tone: Option<Tone>,
    right: bool,
}

/// Between two columns.
const BETWEEN: &str = "  ";
/// What is left of the last column at least.
const LAST: usize = 12;

impl Cell {
    /// A text of somebody, made safe. Nothing is shown as a dash.
    pub(crate) fn new(text: &str) -> Self {
        let text = if text.is_empty() { "-".to_owned() } else { text::safe(text) };
        Self { text, tone: None, right: false }
    }

    /// In a colour.
    pub(crate) fn toned(self, tone: Tone) -> Self {
        Self { tone: Some(tone), ..self }
    }

    /// Aligned as numbers are.
    pub(crate) fn number(number: Option<u64>) -> Self {
        Self { right: true, ..Self::new(&number.map(|number| number.to_string()).unwrap_or_default()) }
    }
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        let heading = heading.iter().map(|text| Cell::new(text).toned(Tone::Strong)).collect();
        Self { heading, rows: Vec::new() }
    }

    /// A row has as many cells as the heading.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// All of it, each row a line.
    pub(crate) fn draw(&self, screen: &Screen) -> String {
        let widths = self.widths(screen);
        let rows = std::iter::once(&self.heading).chain(&self.rows);
        rows.map(|row| line(row, &widths, &self.rights(), screen) + "\n").collect()
    }

    fn widths(&self, screen: &Screen) -> Vec<usize> {
        let column = |index: usize| {
            let cells = std::iter::once(&self.heading).chain(&self.rows).filter_map(|row| row.get(index));
            cells.map(|cell| text::width(&cell.text)).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.heading.len()).map(column).collect();
        if let Some((last, others)) = widths.split_last_mut() {
            let taken = others.iter().map(|width| width + BETWEEN.len()).sum::<usize>();
            *last = (*last).min(screen.width.saturating_sub(taken).max(LAST));
        }
        widths
    }

    /// Whether a column holds numbers.
    fn rights(&self) -> Vec<bool> {
        let is_right = |index: usize| self.rows.iter().filter_map(|row| row.get(index)).any(|cell| cell.right);
        (0..self.heading.len()).map(is_right).collect()
    }
}

fn line(row: &[Cell], widths: &[usize], rights: &[bool], screen: &Screen) -> String {
    let cells = row.iter().zip(widths).zip(rights).map(|((cell, width), right)| {
        let cut = text::cut(&cell.text, *width);
        let fill = " ".repeat(width.saturating_sub(text::width(&cut)));
        let shown = cell.tone.map_or_else(|| cut.clone(), |tone| screen.paint(tone, &cut));
        if *right { fill + &shown } else { shown + &fill }
    });
    cells.collect::<Vec<_>>().join(BETWEEN).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_to_be_and_the_last_gives_way() {
        let mut table = Table::new(&["NAME", "COUNT", "MESSAGE"]);
        table.row(vec![
            Cell::new("a-long-name"),
            Cell::number(Some(7)),
            Cell::new("all is well, and there is more to say"),
        ]);
        table.row(vec![Cell::new("b\u{1b}"), Cell::number(None), Cell::new("")]);
        let expected = "NAME         COUNT  MESSAGE
a-long-name      7  all is well, and th…
b\\u{1b}          -  -
";
        assert_eq!(table.draw(&Screen::plain(40)), expected);
    }

    #[test]
    fn colours_take_no_room() {
        let screen = Screen { width: 80, colours: true };
        let mut table = Table::new(&["A", "B"]);
        table.row(vec![Cell::new("yes").toned(Tone::Good), Cell::new("x")]);
        let drawn = table.draw(&screen);
        assert!(drawn.contains("\u{1b}[32myes\u{1b}[0m  x"), "{drawn:?}");
    }
}
