//! Plain aligned tables for the terminal.

/// How a column lines up.
#[derive(Clone, Copy)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table; every row has as many cells as there are columns.
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these headings.
    pub(crate) fn new<const N: usize>(columns: [(&str, Align); N]) -> Self {
        Self { columns: columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells stay empty, surplus ones are dropped.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = cells.into_iter().take(self.columns.len()).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// The table as lines without a final line end.
    pub(crate) fn render(&self) -> String {
        let headings: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let all = || std::iter::once(&headings).chain(&self.rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| all().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        let lines: Vec<String> = all().map(|row| self.line(row, &widths)).collect();
        lines.join("\n")
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).zip(&self.columns).map(|((cell, &width), (_, align))| match align {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_without_blanks() {
        let mut table = Table::new([("name", Align::Left), ("n", Align::Right), ("note", Align::Left)]);
        table.row(["a".to_owned(), "10".to_owned(), String::new()]);
        table.row(["long name".to_owned(), "7".to_owned(), "x".to_owned()]);
        assert_eq!(table.render(), "name        n  note\na          10\nlong name   7  x");
    }
}
