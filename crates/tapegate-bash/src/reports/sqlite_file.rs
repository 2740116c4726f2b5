//! Writes a SQLite database: tables without indexes, row after row, in bounded memory.
//!
//! Only the parts of the format that such a file needs are here: table leaves, interior pages,
//! overflow pages and the schema. A library would be many times the size of everything else in
//! this crate. The format is described at sqlite.org/fileformat2.html.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The size of a page.
const PAGE: usize = 4096;
/// The largest payload that a leaf holds without overflow pages, and the least part of a larger one.
const LOCAL_MAX: usize = PAGE - 35;
const LOCAL_MIN: usize = (PAGE - 12) * 32 / 255 - 23;
/// The length of the file header, which is part of the first page.
const HEADER: usize = 100;
const LEAF: u8 = 0x0d;
const INTERIOR: u8 = 0x05;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SqliteValue {
    Null,
    Integer(i64),
    Text(String),
}

/// A database that is being written.
#[derive(Debug)]
pub(super) struct SqliteFile {
    file: BufWriter<File>,
    /// How many pages there are, the first included.
    pages: u32,
    tables: Vec<WrittenTable>,
}

/// A table, and the part of it that is not on disk yet.
#[derive(Debug)]
struct WrittenTable {
    name: &'static str,
    sql: String,
    rows: i64,
    leaf: LeafPage,
    /// The pages that are written: number and last row id.
    written: Vec<(u32, i64)>,
}

/// A leaf that is being filled.
#[derive(Debug, Default)]
struct LeafPage {
    cells: Vec<Vec<u8>>,
    bytes: usize,
}

impl SqliteFile {
    /// Creates the file, which must not exist.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let mut file = BufWriter::new(file);
        // The first page holds the schema, and is written when that is known.
        file.write_all(&[0; PAGE])?;
        Ok(Self { file, pages: 1, tables: Vec::new() })
    }

    /// Begins a table; rows go to the last one.
    pub(super) fn begin_table(
        &mut self,
        name: &'static str,
        columns: &[(&'static str, &'static str)],
    ) -> io::Result<()> {
        let columns: Vec<String> =
            columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        let sql = format!("CREATE TABLE {name} ({})", columns.join(", "));
        let leaf = LeafPage::default();
        self.tables.push(WrittenTable { name, sql, rows: 0, leaf, written: Vec::new() });
        Ok(())
    }

    /// Adds a row to the last table.
    pub(super) fn add_row(&mut self, values: &[SqliteValue]) -> io::Result<()> {
        // Taken out while it is written, since overflow pages need the whole file.
        let Some(mut table) = self.tables.pop() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let added = self.add_record(&mut table, &record(values));
        self.tables.push(table);
        added
    }

    fn add_record(&mut self, table: &mut WrittenTable, record: &[u8]) -> io::Result<()> {
        // Row ids ascend without gaps, so leaves are filled in order and never split.
        let row_id = table.rows + 1;
        let mut cell = Vec::new();
        push_varint(&mut cell, record.len() as u64);
        push_varint(&mut cell, row_id as u64);
        let local = local_bytes(record.len());
        cell.extend_from_slice(&record[..local]);
        if local < record.len() {
            let first = self.write_overflow(&record[local..])?;
            cell.extend_from_slice(&first.to_be_bytes());
        }
        if !table.leaf.has_room(cell.len()) {
            self.write_leaf(table)?;
        }
        table.leaf.bytes += cell.len() + 2;
        table.leaf.cells.push(cell);
        table.rows = row_id;
        Ok(())
    }

    /// Writes a chain of overflow pages, which are numbered in order; returns the first.
    fn write_overflow(&mut self, bytes: &[u8]) -> io::Result<u32> {
        let first = self.pages + 1;
        let mut pieces = bytes.chunks(PAGE - 4).peekable();
        while let Some(piece) = pieces.next() {
            // The page that is written now has the number after the last, and its successor follows
            // it.
            let next = if pieces.peek().is_some() { self.pages + 2 } else { 0 };
            let mut page = next.to_be_bytes().to_vec();
            page.extend_from_slice(piece);
            self.write_page(page)?;
        }
        Ok(first)
    }

    fn write_leaf(&mut self, table: &mut WrittenTable) -> io::Result<()> {
        let leaf = std::mem::take(&mut table.leaf);
        let number = self.write_page(leaf_page(&leaf.cells, 0))?;
        table.written.push((number, table.rows));
        Ok(())
    }

    fn write_page(&mut self, mut page: Vec<u8>) -> io::Result<u32> {
        page.resize(PAGE, 0);
        self.file.write_all(&page)?;
        self.pages += 1;
        Ok(self.pages)
    }

    /// Writes the interior pages above the leaves; returns the root.
    fn write_tree(&mut self, mut level: Vec<(u32, i64)>) -> io::Result<u32> {
        // A cell of an interior page has at most 4 + 9 bytes and a pointer of 2.
        let fan_out = (PAGE - 12) / 15;
        while level.len() > 1 {
            let mut above = Vec::new();
            // Groups of equal size: a page without a key is not a valid one.
            let groups = level.len().div_ceil(fan_out + 1);
            for group in level.chunks(level.len().div_ceil(groups)) {
                let number = self.write_page(interior_page(group))?;
                above.push((number, group.last().map_or(0, |(_, last)| *last)));
            }
            level = above;
        }
        Ok(level.first().map_or(0, |(number, _)| *number))
    }

    /// Writes what is left, and the first page with the schema.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let mut schema = Vec::new();
        for (index, mut table) in std::mem::take(&mut self.tables).into_iter().enumerate() {
            self.write_leaf(&mut table)?;
            let root = self.write_tree(std::mem::take(&mut table.written))?;
            let text = |text: &str| SqliteValue::Text(text.to_owned());
            let row = record(&[
                text("table"),
                text(table.name),
                text(table.name),
                SqliteValue::Integer(i64::from(root)),
                text(&table.sql),
            ]);
            let mut cell = Vec::new();
            push_varint(&mut cell, row.len() as u64);
            push_varint(&mut cell, index as u64 + 1);
            cell.extend_from_slice(&row);
            schema.push(cell);
        }
        let mut first = leaf_page(&schema, HEADER);
        first[..HEADER].copy_from_slice(&file_header(self.pages));
        // Last, so that an export that was interrupted is not a valid database.
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&first)?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()
    }
}

impl LeafPage {
    fn has_room(&self, cell: usize) -> bool {
        8 + self.bytes + cell + 2 <= PAGE
    }
}

/// How much of a payload is in the leaf.
fn local_bytes(payload: usize) -> usize {
    if payload <= LOCAL_MAX {
        return payload;
    }
    let local = LOCAL_MIN + (payload - LOCAL_MIN) % (PAGE - 4);
    if local <= LOCAL_MAX { local } else { LOCAL_MIN }
}

/// A leaf: pointers grow from its beginning, cells from its end.
fn leaf_page(cells: &[Vec<u8>], offset: usize) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let mut end = PAGE;
    for (index, cell) in cells.iter().enumerate() {
        end -= cell.len();
        page[end..end + cell.len()].copy_from_slice(cell);
        let pointer = offset + 8 + 2 * index;
        page[pointer..pointer + 2].copy_from_slice(&(end as u16).to_be_bytes());
    }
    page[offset] = LEAF;
    page[offset + 3..offset + 5].copy_from_slice(&(cells.len() as u16).to_be_bytes());
    page[offset + 5..offset + 7].copy_from_slice(&(end as u16).to_be_bytes());
    page
}

/// An interior page for these children; the last one is its rightmost pointer.
fn interior_page(children: &[(u32, i64)]) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let Some((right, cells)) = children.split_last() else { return page };
    let mut end = PAGE;
    for (index, (child, last)) in cells.iter().enumerate() {
        let mut cell = child.to_be_bytes().to_vec();
        push_varint(&mut cell, *last as u64);
        end -= cell.len();
        page[end..end + cell.len()].copy_from_slice(&cell);
        let pointer = 12 + 2 * index;
        page[pointer..pointer + 2].copy_from_slice(&(end as u16).to_be_bytes());
    }
    page[0] = INTERIOR;
    page[3..5].copy_from_slice(&(cells.len() as u16).to_be_bytes());
    page[5..7].copy_from_slice(&(end as u16).to_be_bytes());
    page[8..12].copy_from_slice(&right.0.to_be_bytes());
    page
}

fn file_header(pages: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..16].copy_from_slice(b"SQLite format 3\0");
    header[16..18].copy_from_slice(&(PAGE as u16).to_be_bytes());
    // Format versions for writing and reading; no reserved bytes; fixed fractions.
    header[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
    let mut put =
        |at: usize, number: u32| header[at..at + 4].copy_from_slice(&number.to_be_bytes());
    put(24, 1);
    put(28, pages);
    // The schema's cookie and format, and UTF-8.
    put(40, 1);
    put(44, 4);
    put(56, 1);
    // The change counter that the page count is valid for, and the version that wrote the file.
    put(92, 1);
    put(96, 3_045_000);
    header
}

/// A row in the record format: the types of the values, then the values.
fn record(values: &[SqliteValue]) -> Vec<u8> {
    let (mut types, mut body) = (Vec::new(), Vec::new());
    for value in values {
        match value {
            SqliteValue::Null => push_varint(&mut types, 0),
            // Always eight bytes: shorter forms save little, and would need more cases.
            SqliteValue::Integer(number) => {
                push_varint(&mut types, 6);
                body.extend_from_slice(&number.to_be_bytes());
            }
            SqliteValue::Text(text) => {
                push_varint(&mut types, text.len() as u64 * 2 + 13);
                body.extend_from_slice(text.as_bytes());
            }
        }
    }
    // The length of the header counts itself.
    let mut length = types.len() + 1;
    if length > 127 {
        length += 1;
    }
    let mut record = Vec::new();
    push_varint(&mut record, length as u64);
    record.extend(types);
    record.extend(body);
    record
}

/// A number in groups of seven bits, the highest first. The ninth byte would have eight.
fn push_varint(out: &mut Vec<u8>, number: u64) {
    let mut groups = [0; 8];
    let mut rest = number & 0x00ff_ffff_ffff_ffff;
    let mut at = groups.len();
    loop {
        at -= 1;
        groups[at] = (rest & 0x7f) as u8 | if at == 7 { 0 } else { 0x80 };
        rest >>= 7;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&groups[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks SQLite itself, through Python's standard library.
    fn ask(path: &Path, script: &str) -> String {
        let script = format!("import sqlite3,sys\ndb = sqlite3.connect(sys.argv[1])\n{script}");
        let mut python = std::process::Command::new("python3");
        let done = python.arg("-c").arg(script).arg(path).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn sqlite_reads_every_row_of_small_and_large_tables() {
        for (count, text_bytes) in
            [(0, 10), (1, 10), (3, 70_000), (1000, 300), (50, 4061), (50, 4062), (300_000, 3)]
        {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.db");
            let mut file = SqliteFile::create(&path).unwrap();
            file.begin_table("a", &[("n", "INTEGER"), ("t", "TEXT"), ("e", "TEXT")]).unwrap();
            for number in 0..count {
                let text = SqliteValue::Text("é".repeat(text_bytes / 2));
                file.add_row(&[SqliteValue::Integer(number - 5), text, SqliteValue::Null]).unwrap();
            }
            file.begin_table("b", &[("x", "TEXT")]).unwrap();
            file.add_row(&[SqliteValue::Text("last".to_owned())]).unwrap();
            file.finish().unwrap();
            let script = "print(db.execute('PRAGMA integrity_check').fetchone()[0])\n\
                print(*db.execute('SELECT count(*), coalesce(sum(n), 0), coalesce(sum(length(t)), 0), count(e) FROM a').fetchone())\n\
                print(db.execute('SELECT x FROM b').fetchone()[0])";
            let sum: i64 = (0..count).map(|number| number - 5).sum();
            let chars = count * (text_bytes as i64 / 2);
            let expected = format!("ok\n{count} {sum} {chars} 0\nlast");
            assert_eq!(ask(&path, script), expected, "{count} rows of {text_bytes}");
        }
    }

    #[test]
    fn a_file_that_exists_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        std::fs::write(&path, "mine").unwrap();
        assert!(SqliteFile::create(&path).is_err());
    }
}
