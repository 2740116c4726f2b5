//! Command-line arguments for redaction, and the redactor made from them.

use std::path::PathBuf;

use anyhow::Context;
use tapegate_policy::redact::{RedactionKey, RedactionRules, Redactor};
use tapegate_store::input;

use crate::exit::{Exit, Failure};

/// The shortest secret accepted as a key; a shorter one can be guessed.
const SECRET_BYTES_MIN: usize = 16;
/// The longest secret accepted as a key.
const SECRET_BYTES_MAX: u64 = 1 << 20;

/// What is masked, and with which key.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RedactArgs {
    /// What to mask on the tape: a path such as `params.arguments.password` or `..token`, `secrets`
    /// for all well-known tokens, one kind of token such as `github`, or `entropy`; repeatable, or
    /// separated by commas
    #[arg(long, value_name = "RULE")]
    pub(crate) redact: Vec<String>,
    /// A file with your own secret for making placeholders, so that other readers of the tape
    /// cannot test guesses; without it, a random key is stored in the tape's header
    #[arg(long, value_name = "FILE", requires = "redact")]
    pub(crate) redact_key_file: Option<PathBuf>,
}

impl RedactArgs {
    /// The redactor that the arguments ask for, if any.
    pub(crate) fn redactor(&self) -> anyhow::Result<Option<Redactor>> {
        let rules = RedactionRules::parse(&self.redact).map_err(|error| {
            let hint = error.hint();
            Failure::new(Exit::Usage, error).hint(hint)
        })?;
        if rules.is_empty() {
            return Ok(None);
        }
        let key = match self.own_key()? {
            Some(own) => own,
            // A new key for each tape: equal placeholders on two tapes would reveal equal secrets.
            None => RedactionKey::for_tape(random().context("cannot generate a random key")?),
        };
        Ok(Some(Redactor::new(rules, key)))
    }

    /// The user's own key, if a key file is named.
    pub(crate) fn own_key(&self) -> anyhow::Result<Option<RedactionKey>> {
        let Some(path) = &self.redact_key_file else { return Ok(None) };
        let name = path.display();
        let read = input::read(path, SECRET_BYTES_MAX);
        let secret = read.with_context(|| format!("cannot read `{name}`"))?;
        let secret = secret.trim_ascii();
        if secret.len() < SECRET_BYTES_MIN {
            let message = format!("`{name}` holds fewer than {SECRET_BYTES_MIN} bytes");
            // Not into the file that was named: it may have been named by mistake.
            let hint = "make a key with `openssl rand -hex 32 > tape.key`, and name that file";
            return Err(Failure::new(Exit::Usage, message).hint(hint).into());
        }
        Ok(Some(RedactionKey::from_secret(secret)))
    }
}

/// Random bytes.
pub(crate) fn random() -> std::io::Result<[u8; 32]> {
    tapegate_store::random::bytes()
}
