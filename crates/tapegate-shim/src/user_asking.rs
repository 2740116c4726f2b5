//! Builds the question that a client's user is asked.

use tapegate_core::gate::{HoldOutcome, InputQuestion, UserQuestion};
use tapegate_core::hex;
use tapegate_policy::judge::AskMode;
use tapegate_policy::request_state::{CarriedCall, RequestStateKey};
use tapegate_policy::user_question::QuestionText;
use tapegate_store::random;

/// The call that a question is about.
pub(crate) struct AskedCall<'a> {
    pub(crate) approval_id: &'a str,
    pub(crate) call_hash: &'a str,
    pub(crate) expires_us: i64,
}

/// The event that makes the relay ask.
pub(crate) fn question(
    mode: AskMode,
    text: &QuestionText,
    call: &AskedCall<'_>,
    states: Option<&RequestStateKey>,
) -> Result<HoldOutcome, String> {
    let random: [u8; 16] = random::bytes().map_err(|error| error.to_string())?;
    let id = format!("tapegate-{}", hex::encode(&random));
    let question = UserQuestion::new(&id, &text.text, text.is_whole);
    Ok(match mode {
        AskMode::Request => HoldOutcome::AskUser(Box::new(question)),
        AskMode::Result => {
            let states = states.ok_or("there is no key for the state of a question")?;
            let state = states.seal(&CarriedCall {
                approval_id: call.approval_id.to_owned(),
                call_hash: call.call_hash.to_owned(),
                may_approve: text.is_whole,
                expires_us: call.expires_us,
            });
            HoldOutcome::AskInResult(Box::new(InputQuestion::new(question, state)))
        }
    })
}
