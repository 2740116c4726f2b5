//! The files of a policy, from disk or from the accepted copy, recording every text by name.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tapegate_yaml::files::{FileError, Files, OpenedFile};

use crate::local_files::LocalFiles;

/// The files that a policy is loaded from.
pub(crate) struct PolicyFiles {
    main: String,
    folder: String,
    disk: LocalFiles,
    /// The accepted texts, if the policy is loaded from them.
    copy: Option<BTreeMap<String, String>>,
    by_name: RefCell<BTreeMap<String, String>>,
    by_path: RefCell<BTreeMap<String, String>>,
    variables: RefCell<BTreeMap<String, String>>,
    main_missing: Cell<bool>,
}

/// The texts that were read, with variables unexpanded.
pub(crate) struct FilesWithoutValues<'a>(&'a PolicyFiles);

/// What a policy was loaded from.
pub(crate) struct NotedFiles {
    /// Every file that was requested from disk, whether or not it exists.
    pub(crate) requested: Vec<PathBuf>,
    /// The texts by their names in the policy.
    pub(crate) by_name: BTreeMap<String, String>,
    /// The texts by the paths that the loader requested.
    pub(crate) by_path: BTreeMap<String, String>,
    pub(crate) variables: BTreeMap<String, String>,
}

impl PolicyFiles {
    /// The files as they are on disk.
    pub(crate) fn from_disk(path: &Path) -> Self {
        // A pipe or device in place of the policy would block the start.
        let disk = LocalFiles::regular_only();
        let main = path.to_string_lossy().into_owned();
        Self {
            folder: disk.folder_of(&main),
            main,
            disk,
            copy: None,
            by_name: RefCell::default(),
            by_path: RefCell::default(),
            variables: RefCell::default(),
            main_missing: Cell::new(false),
        }
    }

    /// The accepted texts of the policy in this file.
    pub(crate) fn from_accepted(path: &Path, texts: BTreeMap<String, String>) -> Self {
        Self { copy: Some(texts), ..Self::from_disk(path) }
    }

    /// The same texts, as far as they were read, with every variable unexpanded.
    pub(crate) fn without_values(&self) -> FilesWithoutValues<'_> {
        FilesWithoutValues(self)
    }

    /// Whether exactly these texts were read.
    pub(crate) fn has_texts(&self, texts: &BTreeMap<String, String>) -> bool {
        *self.by_name.borrow() == *texts
    }

    /// Whether the policy file itself does not exist.
    pub(crate) fn is_main_missing(&self) -> bool {
        self.main_missing.get()
    }

    pub(crate) fn into_noted(self) -> NotedFiles {
        NotedFiles {
            requested: self.disk.requested_files(),
            by_name: self.by_name.into_inner(),
            by_path: self.by_path.into_inner(),
            variables: self.variables.into_inner(),
        }
    }

    /// The name of a file in the copy: its path relative to the policy's folder, which is the same
    /// however that folder was reached.
    fn name_of<'p>(&self, path: &'p str) -> &'p str {
        let below = path.strip_prefix(&self.folder).and_then(|rest| rest.strip_prefix('/'));
        below.unwrap_or(path).trim_start_matches("./")
    }

    fn open_copy(&self, path: &str, bytes_max: usize) -> Option<Result<OpenedFile, FileError>> {
        let text = match self.copy.as_ref()?.get(self.name_of(path)) {
            Some(text) if text.len() <= bytes_max => text,
            Some(_) => return Some(Err(FileError::TooLarge { bytes_max })),
            // Not from the disk: a text that was never accepted must not join accepted ones.
            None => return Some(Err(FileError::Missing)),
        };
        Some(Ok(OpenedFile { path: path.to_owned(), bytes: text.as_bytes().to_vec() }))
    }
}

impl Files for FilesWithoutValues<'_> {
    fn open(&self, path: &str, _bytes_max: usize) -> Result<OpenedFile, FileError> {
        let texts = self.0.by_path.borrow();
        let text = texts.get(path).ok_or(FileError::Missing)?;
        Ok(OpenedFile { path: path.to_owned(), bytes: text.as_bytes().to_vec() })
    }

    fn open_within(
        &self,
        folder: &str,
        path: &str,
        bytes_max: usize,
    ) -> Result<OpenedFile, FileError> {
        self.open(&format!("{folder}/{path}"), bytes_max)
    }

    fn folder_of(&self, path: &str) -> String {
        self.0.folder_of(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        // An unset variable stays unset, so that a fault about it is the same with and without
        // values.
        self.0.disk.variable(name).map(|_| format!("${{{name}}}"))
    }
}

impl Files for PolicyFiles {
    fn open(&self, path: &str, bytes_max: usize) -> Result<OpenedFile, FileError> {
        let from_copy = self.open_copy(path, bytes_max);
        let opened = from_copy.unwrap_or_else(|| self.disk.open(path, bytes_max));
        if path == self.main {
            self.main_missing.set(matches!(opened, Err(FileError::Missing)));
        }
        let opened = opened?;
        // A file that is not text does not load, and so is never accepted.
        if let Ok(text) = std::str::from_utf8(&opened.bytes) {
            self.by_name.borrow_mut().insert(self.name_of(path).to_owned(), text.to_owned());
            self.by_path.borrow_mut().insert(path.to_owned(), text.to_owned());
        }
        Ok(opened)
    }

    fn open_within(
        &self,
        folder: &str,
        path: &str,
        bytes_max: usize,
    ) -> Result<OpenedFile, FileError> {
        let whole = format!("{folder}/{path}");
        let from_copy = self.open_copy(&whole, bytes_max);
        let opened = from_copy.unwrap_or_else(|| self.disk.open_within(folder, path, bytes_max))?;
        if let Ok(text) = std::str::from_utf8(&opened.bytes) {
            self.by_name.borrow_mut().insert(self.name_of(&whole).to_owned(), text.to_owned());
            self.by_path.borrow_mut().insert(whole, text.to_owned());
        }
        Ok(opened)
    }

    fn folder_of(&self, path: &str) -> String {
        self.disk.folder_of(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = self.disk.variable(name)?;
        self.variables.borrow_mut().insert(name.to_owned(), value.clone());
        Some(value)
    }
}
