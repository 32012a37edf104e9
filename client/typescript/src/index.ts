export {Posthorn, type CallOptions, type Input, type Operations, type Options, type Output, type Schema} from './client.js';
export {PosthornBatchError, PosthornConnectionError, PosthornError, type FieldProblem} from './errors.js';
export {SignatureError, Verifier, type Format, type VerifierOptions, type Webhook} from './webhook.js';
