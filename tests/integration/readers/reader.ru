# Rack behind Puma. The answer's field X-Read says what an application finds in the request.
require 'json'
require 'rack'

def text(value)
  case value
  when Array then value.map { |item| text(item) }.join(',')
  when Hash then value.values.map { |item| text(item) }.join(',')
  else value&.dup&.force_encoding('UTF-8')&.scrub
  end
end

def credentials(env)
  given = Rack::Auth::Basic::Request.new(env)
  return nil unless given.provided?

  given.basic? ? given.credentials.join(':') : given.params
end

run(lambda do |env|
  method = nil
  Rack::MethodOverride.new(->(inner) { method = inner['REQUEST_METHOD'] }).call(env.dup)
  request = Rack::Request.new(env)
  read = { path: Rack::Utils.unescape_path(request.path), query: request.GET['api_key'], cookie: request.cookies['session_id'],
           header: env['HTTP_X_API_KEY'], credentials: credentials(env), method: method }
  [200, { 'X-Read' => JSON.generate(read.transform_values { |value| text(value) }, ascii_only: true) }, []]
end)
