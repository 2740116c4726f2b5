//! Walks the params of a request and skips what does not count.

use std::ops::Range;

use crate::json::path::{ChildPosition, JsonPath, PathDescent};
use crate::json::{BracketStack, Cursor, JsonFault, JsonKind, JsonStr};

/// Below this depth a value counts by its text, so that depth costs neither stack nor memory.
pub(super) const DEPTH_MAX: usize = 128;

/// The next item in the params.
#[derive(Debug, Clone, Copy)]
pub(super) enum ParamsEvent<'a> {
    /// An object or array begins.
    Open {
        object: bool,
    },
    /// The innermost open object or array ends.
    Close,
    /// A key; its value follows.
    Key(JsonStr<'a>),
    String(JsonStr<'a>),
    Number(&'a [u8]),
    /// `true`, `false` or `null`, or a value that is too deep: its text counts.
    Text(&'a [u8]),
    /// A value of which only the presence counts.
    Hidden,
}

/// A walk through params. It keeps only the stack of open values.
#[derive(Debug)]
pub(super) struct ParamsWalk<'p, 'a> {
    cursor: Cursor<'a>,
    depth: BracketStack,
    /// Whether the value of a key comes next.
    due: bool,
    /// Whether only the presence of that value counts.
    hide: bool,
    /// Whether the open object on the second level is `inputResponses`.
    responses: bool,
    paths: &'p [JsonPath],
    descent: PathDescent,
    /// For each open value: the paths that continue in it, and the index of its next element.
    ways: Vec<(Range<usize>, usize)>,
    /// The paths that continue in the next value.
    next: Range<usize>,
}

impl<'p, 'a> ParamsWalk<'p, 'a> {
    /// A walk through the params of a message that skips the values at `paths`.
    pub(super) fn new(params: &'a [u8], paths: &'p [JsonPath]) -> Result<Self, JsonFault> {
        let mut descent = PathDescent::new(0..paths.len());
        let roots = 0..descent.end();
        let ignored = descent.descend(paths, roots.clone(), ChildPosition::Key("params"));
        let next = roots.end..descent.end();
        Ok(Self {
            cursor: Cursor::new(if ignored { b"{}" } else { params })?,
            depth: BracketStack::default(),
            due: true,
            hide: false,
            responses: false,
            paths,
            descent,
            ways: Vec::new(),
            next,
        })
    }

    /// The next event, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<ParamsEvent<'a>>, JsonFault> {
        loop {
            if self.due {
                self.due = false;
                return self.value().map(Some);
            }
            let Some(object) = self.depth.top() else { return Ok(None) };
            if object {
                let Some(key) = self.cursor.next_key()? else { break };
                if self.member(key)? {
                    self.due = true;
                    return Ok(Some(ParamsEvent::Key(key)));
                }
            } else {
                if !self.cursor.next_item()? {
                    break;
                }
                self.due = self.element();
            }
            if !self.due {
                self.cursor.value()?;
            }
        }
        self.depth.pop();
        if let Some((range, _)) = self.ways.pop() {
            self.descent.truncate(range.start);
        }
        Ok(Some(ParamsEvent::Close))
    }

    fn value(&mut self) -> Result<ParamsEvent<'a>, JsonFault> {
        let kind = self.cursor.kind()?;
        let open = match kind {
            _ if std::mem::take(&mut self.hide) => {
                self.cursor.value()?;
                self.descent.truncate(self.next.start);
                return Ok(ParamsEvent::Hidden);
            }
            JsonKind::Object | JsonKind::Array => self.depth.count() < DEPTH_MAX,
            _ => false,
        };
        if open {
            self.cursor.open()?;
            self.depth.push(kind == JsonKind::Object);
            if !self.paths.is_empty() {
                self.ways.push((self.next.clone(), 0));
            }
            return Ok(ParamsEvent::Open { object: kind == JsonKind::Object });
        }
        self.descent.truncate(self.next.start);
        Ok(match kind {
            JsonKind::String => ParamsEvent::String(self.cursor.string()?),
            JsonKind::Number => ParamsEvent::Number(self.cursor.value()?),
            _ => ParamsEvent::Text(self.cursor.value()?),
        })
    }

    /// Whether the member with this key counts.
    fn member(&mut self, key: JsonStr<'a>) -> Result<bool, JsonFault> {
        match self.depth.count() {
            1 if key.is("_meta") => return Ok(false),
            1 if key.is("cursor") => {
                if self.cursor.kind()? == JsonKind::Null {
                    return Ok(false);
                }
                self.hide = true;
            }
            1 => {
                let named = key.is("inputResponses");
                self.responses = named && self.cursor.kind()? == JsonKind::Object;
            }
            2 => self.hide = self.responses,
            _ => {}
        }
        let counts = self.paths.is_empty() || !self.ignored(ChildPosition::Key(&key.decode()));
        self.hide &= counts;
        Ok(counts)
    }

    /// Whether the next element counts.
    fn element(&mut self) -> bool {
        let Some((_, index)) = self.ways.last_mut() else { return true };
        let child = *index;
        *index += 1;
        !self.ignored(ChildPosition::Index(child))
    }

    /// Whether a path ends at the next child; if not, advances the paths that continue in it.
    fn ignored(&mut self, child: ChildPosition<'_>) -> bool {
        let Some((parent, _)) = self.ways.last() else { return false };
        let start = self.descent.end();
        let ignored = self.descent.descend(self.paths, parent.clone(), child);
        if ignored {
            self.descent.truncate(start);
        }
        self.next = start..self.descent.end();
        ignored
    }
}
