//! Text tables.

use super::{TerminalLayout, TextStyle, text};

/// Rows below a heading. Columns are as wide as their content; the last one is truncated at the width of the
/// screen.
#[derive(Debug)]
pub(crate) struct TextTable {
    heading: Vec<TableCell>,
    rows: Vec<Vec<TableCell>>,
}

/// A cell of a row.
#[derive(Clone, Debug)]
pub(crate) struct TableCell {
    text: String,
    style: Option<TextStyle>,
    align_right: bool,
}

const COLUMN_SEPARATOR: &str = "  ";
/// The last column is not truncated below this.
const MIN_LAST_COLUMN_WIDTH: usize = 12;

impl TableCell {
    /// Untrusted text, sanitized. Empty text is shown as a dash.
    pub(crate) fn new(text: &str) -> Self {
        let text = if text.is_empty() { "-".to_owned() } else { text::sanitize(text) };
        Self { text, style: None, align_right: false }
    }

    pub(crate) fn with_style(self, tone: TextStyle) -> Self {
        Self { style: Some(tone), ..self }
    }

    pub(crate) fn number(number: Option<u64>) -> Self {
        Self { align_right: true, ..Self::new(&number.map(|number| number.to_string()).unwrap_or_default()) }
    }
}

impl TextTable {
    pub(crate) fn new(heading: &[&str]) -> Self {
        let heading = heading.iter().map(|text| TableCell::new(text).with_style(TextStyle::Strong)).collect();
        Self { heading, rows: Vec::new() }
    }

    /// A row must have as many cells as the heading.
    pub(crate) fn row(&mut self, cells: Vec<TableCell>) {
        self.rows.push(cells);
    }

    /// Renders the table, one line per row.
    pub(crate) fn render(&self, screen: &TerminalLayout) -> String {
        let widths = self.widths(screen);
        let rows = std::iter::once(&self.heading).chain(&self.rows);
        rows.map(|row| render_row(row, &widths, &self.right_aligned_columns(), screen) + "\n").collect()
    }

    fn widths(&self, screen: &TerminalLayout) -> Vec<usize> {
        let column = |index: usize| {
            let cells = std::iter::once(&self.heading).chain(&self.rows).filter_map(|row| row.get(index));
            cells.map(|cell| text::display_width(&cell.text)).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..self.heading.len()).map(column).collect();
        if let Some((last, others)) = widths.split_last_mut() {
            let taken = others.iter().map(|width| width + COLUMN_SEPARATOR.len()).sum::<usize>();
            *last = (*last).min(screen.width.saturating_sub(taken).max(MIN_LAST_COLUMN_WIDTH));
        }
        widths
    }

    fn right_aligned_columns(&self) -> Vec<bool> {
        let is_right = |index: usize| self.rows.iter().filter_map(|row| row.get(index)).any(|cell| cell.align_right);
        (0..self.heading.len()).map(is_right).collect()
    }
}

fn render_row(row: &[TableCell], widths: &[usize], rights: &[bool], screen: &TerminalLayout) -> String {
    let cells = row.iter().zip(widths).zip(rights).map(|((cell, width), right)| {
        let cut = text::truncate(&cell.text, *width);
        let fill = " ".repeat(width.saturating_sub(text::display_width(&cut)));
        let shown = cell.style.map_or_else(|| cut.clone(), |tone| screen.paint(tone, &cut));
        if *right { fill + &shown } else { shown + &fill }
    });
    cells.collect::<Vec<_>>().join(COLUMN_SEPARATOR).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_to_be_and_the_last_gives_way() {
        let mut table = TextTable::new(&["NAME", "COUNT", "MESSAGE"]);
        table.row(vec![
            TableCell::new("a-long-name"),
            TableCell::number(Some(7)),
            TableCell::new("all is well, and there is more to say"),
        ]);
        table.row(vec![TableCell::new("b\u{1b}"), TableCell::number(None), TableCell::new("")]);
        let expected = "NAME         COUNT  MESSAGE
a-long-name      7  all is well, and th…
b\\u{1b}          -  -
";
        assert_eq!(table.render(&TerminalLayout::plain(40)), expected);
    }

    #[test]
    fn colours_take_no_room() {
        let screen = TerminalLayout { width: 80, colours: true };
        let mut table = TextTable::new(&["A", "B"]);
        table.row(vec![TableCell::new("yes").with_style(TextStyle::Good), TableCell::new("x")]);
        let drawn = table.render(&screen);
        assert!(drawn.contains("\u{1b}[32myes\u{1b}[0m  x"), "{drawn:?}");
    }
}
