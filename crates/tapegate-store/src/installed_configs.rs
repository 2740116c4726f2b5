//! Records of installations in the configs of clients, so that they can be undone.
//!
//! A record has the text that a config would have without us, which may contain secrets, so it is
//! kept in the user's state folder and not beside the config.
//!
//! ```text
//! <user state>/installed/<16 hex digits>/record.json   the config, its client, its text, our entries
//! ```

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, OFlags, unlinkat};
use rustix::io::Errno;
use serde_json::json;
use tapegate_core::json::{elements, string, whole_object};

use crate::path_folders::PathFolders;
use crate::private_folder::FolderHandle;
use crate::temporary_file::{self, TemporaryFile};
use crate::user_state::{UserStateError, check_private, open_private};

/// The folder of the user's state folder that holds one folder per config.
const INSTALLED: &str = "installed";
/// The name of a record.
const RECORD: &str = "record.json";
/// The largest record. Configs are read up to 32 MB, and escapes make them longer.
const BYTES_MAX: u64 = 256 << 20;
/// The version of the records.
const FORMAT: u32 = 1;

/// What was installed in one config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledConfig {
    /// The config itself, not a link to it.
    pub config: PathBuf,
    /// The client whose config it is.
    pub client: String,
    /// The text that the config would have without us.
    pub original: String,
    /// The places of the entries that were put behind shims, step by step.
    pub entries: Vec<Vec<String>>,
    /// The places of entries that the user chose not to put behind shims.
    pub left_out: Vec<Vec<String>>,
    /// Microseconds since 1970.
    pub installed_us: i64,
}

/// The installed configs of a user.
#[derive(Debug, Clone)]
pub struct InstalledConfigs {
    folders: PathFolders,
}

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InstalledError {
    /// The folder or the file is not private.
    #[error(transparent)]
    State(#[from] UserStateError),
    /// The record is not as it was written.
    #[error("the record `{}` is damaged", path.display())]
    Damaged {
        /// The record.
        path: PathBuf,
    },
}

impl InstalledConfigs {
    /// The records below this user state folder, which need not exist yet.
    pub fn new(user_state: &Path) -> Self {
        Self { folders: PathFolders::new(user_state.join(INSTALLED)) }
    }

    /// Where the record of a config is, whether or not it exists.
    pub fn path_of(&self, config: &Path) -> PathBuf {
        self.folders.place_of(config).join(RECORD)
    }

    /// The record of a config, if there is one.
    pub fn get(&self, config: &Path) -> Result<Option<InstalledConfig>, InstalledError> {
        self.folders.existing(config)?.map_or(Ok(None), |folder| read(&folder))
    }

    /// All records, sorted by config.
    pub fn list(&self) -> Result<Vec<InstalledConfig>, InstalledError> {
        let mut list = Vec::new();
        for place in self.folders.all()? {
            list.extend(read(&open_private(&place)?)?);
        }
        list.sort_by(|one, two| one.config.cmp(&two.config));
        Ok(list)
    }

    /// Stores a record in place of an earlier one of the same config. It is on the disk when this
    /// returns: the config is edited only afterwards.
    pub fn put(&self, installed: &InstalledConfig) -> Result<(), InstalledError> {
        let folder = self.folders.create(&installed.config)?;
        let write = || {
            let mut temporary = TemporaryFile::in_folder(&folder, RECORD)?;
            temporary.write(&encode(installed))?;
            temporary.file.sync_all()?;
            temporary.replace(RECORD)?;
            std::fs::File::open(folder.path())?.sync_all()
        };
        write().map_err(|source| io_error(&folder, source))
    }

    /// Removes the record of a config; false if there was none.
    pub fn remove(&self, config: &Path) -> Result<bool, InstalledError> {
        let Some(folder) = self.folders.existing(config)? else { return Ok(false) };
        temporary_file::remove_leftovers(folder.handle(), |name| {
            temporary_file::is_temporary_for(name, RECORD)
        });
        let removed = match unlinkat(folder.handle(), RECORD, AtFlags::empty()) {
            Ok(()) => true,
            Err(Errno::NOENT) => false,
            Err(errno) => return Err(io_error(&folder, errno.into())),
        };
        // A folder that is not empty stays; it does no harm.
        std::fs::remove_dir(folder.path()).ok();
        Ok(removed)
    }
}

fn io_error(folder: &FolderHandle, source: io::Error) -> InstalledError {
    InstalledError::State(UserStateError::Io { path: folder.path_of(RECORD), source })
}

fn read(folder: &FolderHandle) -> Result<Option<InstalledConfig>, InstalledError> {
    let file = match folder.file(RECORD, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(folder, error)),
    };
    let path = folder.path_of(RECORD);
    check_private(&path, &file)?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(|source| io_error(folder, source))?;
    decode(&bytes).map(Some).ok_or(InstalledError::Damaged { path })
}

fn encode(installed: &InstalledConfig) -> Vec<u8> {
    let record = json!({
        "format": FORMAT,
        "config": installed.config.to_string_lossy(),
        "client": installed.client,
        "installed_us": installed.installed_us,
        "entries": installed.entries,
        "left_out": installed.left_out,
        "original": installed.original,
    });
    format!("{record}\n").into_bytes()
}

fn decode(bytes: &[u8]) -> Option<InstalledConfig> {
    let members = whole_object(bytes).ok()?;
    let raw = |name: &str| members.iter().find(|(key, _)| key.decode() == name).map(|one| one.1);
    let text = |name: &str| Some(string(raw(name)?)?.into_owned());
    let places = |name: &str| -> Option<Vec<Vec<String>>> {
        let steps = |place: &[u8]| {
            elements(place).map(|step| Some(string(step.ok()?)?.into_owned())).collect()
        };
        elements(raw(name)?).map(|place| steps(place.ok()?)).collect()
    };
    if raw("format")? != FORMAT.to_string().as_bytes() {
        return None;
    }
    Some(InstalledConfig {
        config: PathBuf::from(text("config")?),
        client: text("client")?,
        original: text("original")?,
        entries: places("entries")?,
        left_out: places("left_out")?,
        installed_us: std::str::from_utf8(raw("installed_us")?).ok()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn installed(config: &str) -> InstalledConfig {
        let places = |names: &[&str]| {
            names.iter().map(|name| vec![".mcpServers".to_owned(), (*name).to_owned()]).collect()
        };
        InstalledConfig {
            config: PathBuf::from(config),
            client: "cursor".to_owned(),
            original: "\u{feff}{\r\n  // \"ü\" \\ \u{1f600}\r\n}".to_owned(),
            entries: places(&[".a", "@b \"x\""]),
            left_out: places(&[]),
            installed_us: 17,
        }
    }

    #[test]
    fn a_record_is_private_and_read_as_it_was_written() {
        let top = tempfile::tempdir().unwrap();
        let store = InstalledConfigs::new(&top.path().join("user"));
        assert_eq!(store.list().unwrap(), []);
        assert!(!top.path().join("user").exists());
        let (one, two) = (installed("/a/mcp.json"), installed("/b/mcp.json"));
        for record in [&two, &one, &one] {
            store.put(record).unwrap();
        }
        assert_eq!(store.get(&one.config).unwrap(), Some(one.clone()));
        assert_eq!(store.list().unwrap(), [one.clone(), two.clone()]);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let path = store.path_of(&one.config);
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert!(store.remove(&one.config).unwrap() && !store.remove(&one.config).unwrap());
        assert_eq!((store.get(&one.config).unwrap(), store.list().unwrap()), (None, vec![two]));
    }

    #[test]
    fn a_record_that_is_damaged_or_not_private_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let store = InstalledConfigs::new(&top.path().join("user"));
        let one = installed("/a/mcp.json");
        store.put(&one).unwrap();
        let path = store.path_of(&one.config);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = store.get(&one.config).unwrap_err().to_string();
        assert!(error.contains("other users can access it"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for damaged in
            ["", "{}", &text[..text.len() / 2], &text.replace("format\":1", "format\":2")]
        {
            fs::write(&path, damaged).unwrap();
            let error = store.get(&one.config).unwrap_err().to_string();
            assert!(error.ends_with("record.json` is damaged"), "{damaged}: {error}");
        }
    }
}
